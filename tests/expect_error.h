// For unit tests: EXPECT_ERROR(kind, expression, "words", ...) checks that the expression throws an Error of this kind
// whose text holds all the words.
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "lissome/base/error.h"

namespace lissome {

// What is wrong with what `run` throws; empty when all is as expected.
template <typename Run>
std::string find_error_problem(ErrorKind kind, Run run, std::initializer_list<std::string> words) {
  try {
    run();
  } catch (const Error& error) {
    if (error.kind() != kind) return std::string("another kind: ") + error.what();
    for (const std::string& word : words)
      if (error.message().find(word) == std::string::npos) return "'" + word + "' is not in: " + error.what();
    return "";
  }
  return "nothing was refused";
}

inline bool mentions(std::string_view message, std::string_view part) {
  return message.find(part) != std::string_view::npos;
}

}  // namespace lissome

#define EXPECT_ERROR(kind, expression, ...)                                                                           \
  do {                                                                                                                \
    const std::string problem = ::lissome::find_error_problem(::lissome::ErrorKind::kind,                             \
                                                              [&] { static_cast<void>(expression); }, {__VA_ARGS__}); \
    CHECK_MESSAGE(problem.empty(), problem);                                                                          \
  } while (false)
