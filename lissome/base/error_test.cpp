#include "lissome/base/error.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/expect_error.h"

using namespace lissome;

TEST_CASE("every kind has a name, an exit code, a status and a Python class") {
  std::set<std::string_view> names;
  for (ErrorKind kind : {ErrorKind::usage, ErrorKind::invalid_input, ErrorKind::unsupported, ErrorKind::over_budget,
                         ErrorKind::io, ErrorKind::internal}) {
    CHECK(names.insert(error_kind_name(kind)).second);
    CHECK(exit_code(kind) >= 1);
    CHECK(http_status(kind) >= 400);
    CHECK_FALSE(python_exception(kind).empty());
  }
  CHECK(exit_code(ErrorKind::usage) == 2);
  CHECK(exit_code(ErrorKind::invalid_input) == 4);
  CHECK(exit_code(ErrorKind::unsupported) == 4);
  CHECK(exit_code(ErrorKind::over_budget) == 3);
  CHECK(exit_code(ErrorKind::io) == 1);
}

TEST_CASE("an error says its kind once and its parts in order") {
  try {
    throw_error(ErrorKind::over_budget, "needs ", 812, " MiB, ", 0.5, " allowed");
  } catch (const Error& error) {
    CHECK(error.message() == "needs 812 MiB, 0.5 allowed");
    CHECK(std::string(error.what()) == "over_budget: needs 812 MiB, 0.5 allowed");
  }
  EXPECT_ERROR(internal, [] { LISSOME_CHECK(1 + 1 == 3, "sum ", 2); }(), "error_test.cpp", "1 + 1 == 3", "sum 2");
  LISSOME_CHECK(true);
}
