// What --json prints, of every command the same: one object on one line of stdout,
// {"lissome": version, "command": name, "result": {...}, "tables": [...]}. docs/command-line.md lists the keys of each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lissome/report.h"

namespace lissome {

// `result` is an object: what a script asks for. `tables` are those that the text shows, each with a title. Bytes of
// names that are no UTF-8 become U+FFFD.
std::string print_answer(std::string_view command, Json result, std::span<const Table> tables);

// For words that may be absent: null where empty.
Json or_null(const std::string& text);

// The elements as nested lists, as numpy.ndarray.tolist() gives them. JSON has no NaN and no infinity: those are "NaN",
// "Infinity" and "-Infinity". A complex number is [real, imaginary]. Null for the narrow types without arithmetic (c32,
// floats of 8 bits), as for an array without storage.
Json list_values(const Array& array);

}  // namespace lissome
