// The words of program text that print.cpp writes and parse.cpp reads: one table for both.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lissome/program/program.h"

namespace lissome {

std::string_view value_kind_word(ValueKind kind);  // int, float, bool, str, list, none
std::optional<ValueKind> find_value_kind(std::string_view word);
std::string_view weight_role_word(WeightRole role);
std::optional<WeightRole> find_weight_role(std::string_view word);
std::string_view layout_word(Layout layout);
std::string_view memory_format_word(MemoryFormat format);
bool is_device_word(std::string_view word);  // cpu, cuda:0, meta
// none, true, f32, strided, channels_last, cpu, inf ... as a literal; nothing for other words.
std::optional<Argument> find_literal(std::string_view word);

std::string usual_output_name(size_t position);  // "output.0"

// Equal as literals: nan equals nan, 0.0 is not -0.0. Values compare by id.
bool same_literal(const Argument& left, const Argument& right);

}  // namespace lissome
