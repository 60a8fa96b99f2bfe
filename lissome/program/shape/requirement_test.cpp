#include "lissome/program/shape/requirement.h"

#include <doctest/doctest.h>

#include "lissome/base.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

bool holds(std::string_view text, int64_t a, int64_t b) {
  const DimensionBindings sizes = {{"a", a}, {"b", b}};
  return SizeRequirement::parse(text).slack.evaluate(sizes) >= 0;
}

}  // namespace

TEST_CASE("a requirement holds where Python says so") {
  const auto check = [](std::string_view text, auto&& wanted) {
    CAPTURE(text);
    for (int64_t a = 0; a < 12; ++a) {
      for (int64_t b = 0; b < 12; ++b) {
        CAPTURE(a);
        CAPTURE(b);
        CHECK(holds(text, a, b) == wanted(a, b));
      }
    }
  };
  check("(a % 2) == 0", [](auto a, auto) { return a % 2 == 0; });
  check("a != b", [](auto a, auto b) { return a != b; });
  check("a > b", [](auto a, auto b) { return a > b; });
  check("2*((2 + a) // 3) < 1 + b", [](auto a, auto b) { return 2 * ((2 + a) / 3) < 1 + b; });
  check("2 <= a <= b", [](auto a, auto b) { return 2 <= a && a <= b; });
  check("a == 3 or (b >= 4 and not (a > 7))", [](auto a, auto b) { return a == 3 || (b >= 4 && a <= 7); });
  check("not (a == b) and a*b != 6", [](auto a, auto b) { return a != b && a * b != 6; });
  check("((a + 1) % 4 == 0)", [](auto a, auto) { return (a + 1) % 4 == 0; });
  check("(2*math.ceil((1 + a) / 2)) == b", [](auto a, auto b) { return 2 * ((a + 2) / 2) == b; });
  check("(2*a) == math.trunc(2.0*torch.sym_float(a))", [](auto, auto) { return true; });
  check("math.trunc(3.0*torch.sym_float(a)) == math.trunc(2.00 * torch.sym_float(b))",
        [](auto a, auto b) { return 3 * a == 2 * b; });
  check("math.floor(a*b / 3) > 4", [](auto a, auto b) { return a * b / 3 > 4; });
  check("Max(a, b) < 7", [](auto a, auto b) { return std::max(a, b) < 7; });
}

TEST_CASE("what is no comparison of sizes is refused") {
  for (const char* text : {"", "a", "a +", "a ==", "== a", "(a == 1", "a == 1)", "a = 1", "a == 1 and", "f(a) == 1",
                           "a / 2 == 1", "math.ceil(a + b / 2) == 1", "math.ceil(a) == 1",
                           "math.trunc(2.5*torch.sym_float(a)) == 1", "math.trunc(2.0*a) == 1", "math.trunc() == 1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(SizeRequirement::parse(text), Error);
  }
  std::string deep = "a == 1";
  for (int i = 0; i < 100; ++i) deep = "not (" + deep + ")";
  CHECK_THROWS_AS(SizeRequirement::parse(deep), Error);
}
