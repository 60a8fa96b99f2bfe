// The one error type of the library. Every function that can fail throws it (or returns a reason where a refusal is
// expected). The text says what failed, what was seen and what is allowed; at most two further lines say what to do.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace lissome {

enum class ErrorKind {
  usage,          // a flag or a missing path: exit code 2
  invalid_input,  // a model or data file that breaks a rule: exit code 4
  unsupported,    // a valid file that asks for something lissome cannot do: exit code 4
  over_budget,    // a goal or budget out of reach: exit code 3
  io,             // full disk, no permission: exit code 1
  internal,       // our fault: exit code 1
};

// "invalid_input", "unsupported", ...
std::string_view error_kind_name(ErrorKind kind);

// The process exit code, the HTTP status and the Python exception class for an error of this kind: one table.
int exit_code(ErrorKind kind);
int http_status(ErrorKind kind);
std::string_view python_exception(ErrorKind kind);

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message);

  ErrorKind kind() const noexcept { return kind_; }
  // The text without the kind; what() is "<kind>: <message>".
  const std::string& message() const noexcept { return message_; }
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string what_;
};

// Joins the parts with operator<< and throws; keeps call sites on one line.
template <typename... Parts>
[[noreturn]] void throw_error(ErrorKind kind, const Parts&... parts);

}  // namespace lissome

#include <locale>
#include <sstream>

template <typename... Parts>
[[noreturn]] void lissome::throw_error(ErrorKind kind, const Parts&... parts) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  (text << ... << parts);
  throw Error(kind, text.str());
}

// An invariant of ours: a failure is a bug in lissome, reported as ErrorKind::internal with file and line.
#define LISSOME_CHECK(condition, ...)                                                                   \
  do {                                                                                                  \
    if (!(condition)) [[unlikely]]                                                                      \
      ::lissome::throw_error(::lissome::ErrorKind::internal, __FILE__, ":", __LINE__, ": ", #condition, \
                             " does not hold. " __VA_OPT__(, ) __VA_ARGS__);                            \
  } while (false)
