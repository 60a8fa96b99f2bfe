// How names, strings and numbers look in program text, for the writer and the reader alike.
#pragma once

#include <string>
#include <string_view>

namespace lissome {

// Names of values, weights and outputs stand bare when they are made of letters, digits, _ and single dots; others are
// quoted: %x, %3, @fc.weight, %"odd name".
bool is_bare_name(std::string_view name);
std::string write_name(std::string_view name);
// Names without a sign before them (of outputs) must start like a word, too.
std::string write_word(std::string_view name);

// "encoder.py:88": what stands bare as a source line.
bool is_bare_source(std::string_view source);

// In double quotes, or in single ones where that saves escapes. Escapes: \n \t \r \\ \" \' and \xNN for each byte of
// controls, of marks that turn the direction of text, and of what is not UTF-8.
std::string write_string(std::string_view text);

// The shortest text that reads back to the same bits, never mistaken for an integer: 1.0, 1e-05, -0.0, inf, nan.
std::string write_floating(double value);

}  // namespace lissome
