// Error and the one table of its kinds.
#include "lissome/base/error.h"

namespace lissome {
namespace {

struct KindRow {
  ErrorKind kind;
  std::string_view name;
  int exit_code;
  int http_status;
  std::string_view python_exception;
};

constexpr KindRow kKinds[] = {
    {ErrorKind::usage, "usage", 2, 400, "ValueError"},
    {ErrorKind::invalid_input, "invalid_input", 4, 400, "ValueError"},
    {ErrorKind::unsupported, "unsupported", 4, 501, "NotImplementedError"},
    {ErrorKind::over_budget, "over_budget", 3, 503, "MemoryError"},
    {ErrorKind::io, "io", 1, 500, "OSError"},
    {ErrorKind::internal, "internal", 1, 500, "RuntimeError"},
};

const KindRow& find_kind(ErrorKind kind) {
  for (const KindRow& row : kKinds)
    if (row.kind == kind) return row;
  return kKinds[std::size(kKinds) - 1];
}

}  // namespace

std::string_view error_kind_name(ErrorKind kind) { return find_kind(kind).name; }
int exit_code(ErrorKind kind) { return find_kind(kind).exit_code; }
int http_status(ErrorKind kind) { return find_kind(kind).http_status; }
std::string_view python_exception(ErrorKind kind) { return find_kind(kind).python_exception; }

Error::Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {
  what_ = std::string(error_kind_name(kind)) + ": " + message_;
}

}  // namespace lissome
