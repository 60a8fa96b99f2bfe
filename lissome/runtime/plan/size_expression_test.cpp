#include "lissome/runtime/plan/size_expression.h"

#include <doctest/doctest.h>

#include "lissome/base.h"

using namespace lissome;

TEST_CASE("size expressions follow Python's arithmetic") {
  const std::vector<PlanDimension> dimensions = {{"batch"}, {"n"}};
  const DimensionValues values = {3, 10};
  const auto evaluate = [&](std::string_view text) { return SizeExpression::parse(text, dimensions).evaluate(values); };
  CHECK(evaluate("64") == 64);
  CHECK(evaluate("2*n + 1") == 21);
  CHECK(evaluate("(n + 3)//4") == 3);
  CHECK(evaluate("-n//4") == -3);
  CHECK(evaluate("-(n // 4)") == -2);
  CHECK(evaluate("n % 4 - batch") == -1);
  CHECK(evaluate("n**2 - 2**batch") == 92);
  CHECK(evaluate("Max(1, n, batch) * Min(n, batch)") == 30);
  CHECK(evaluate("n // 0") == std::nullopt);
  CHECK(evaluate("n * 9223372036854775807") == std::nullopt);
  CHECK(evaluate("unknown + 1") == std::nullopt);
  CHECK(SizeExpression::parse("2*n", dimensions).single_dimension() == 1);
  CHECK(SizeExpression::parse("n*batch", dimensions).single_dimension() == -1);
  CHECK(SizeExpression::parse("n", dimensions).evaluate({3, -1}) == std::nullopt);
}

TEST_CASE("broken size expressions are refused") {
  for (const char* text : {"", "n +", "(n", "n)", "Max(", "Max(1", "1 2", "n $ 2", "99999999999999999999", "**2"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(SizeExpression::parse(text, {}), Error);
  }
  CHECK_THROWS_AS(SizeExpression::parse(std::string(100000, '('), {}), Error);
  CHECK_THROWS_AS(SizeExpression::parse(std::string(100000, '-') + "1", {}), Error);
}
