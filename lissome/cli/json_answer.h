// The answer of every command to --json: one object on one line of stdout,
// {"lissome": version, "command": name, "result": {...}, "tables": [...]}. docs/command-line.md lists the keys of each
// command.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lissome/report.h"

namespace lissome {

// `result` is the object that a script reads. `tables` are those of the text, each with a title. Bytes of names that
// are not UTF-8 become U+FFFD.
std::string print_answer(std::string_view command, Json result, std::span<const Table> tables);

// Repeats the value of `name` in `result` under its name in an earlier version. An old name goes with the next version.
void repeat_old_key(Json& result, const char* name, const char* old_name);

// The text, or null if it is empty.
Json or_null(const std::string& text);

// The elements as nested lists, as numpy.ndarray.tolist() gives them. JSON has no NaN and no infinity, so these become
// "NaN", "Infinity" and "-Infinity". A complex number is [real, imaginary]. The result is null for the narrow types
// without arithmetic (c32, floats of 8 bits) and for an array without storage.
Json list_values(const Array& array);

}  // namespace lissome
