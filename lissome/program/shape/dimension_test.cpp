// Dimensions: arithmetic of the normal form against plain evaluation, both spellings, and refusals.
#include "lissome/program/shape/dimension.h"

#include <doctest/doctest.h>

#include <random>

#include "lissome/base.h"

namespace lissome {
namespace {

using Operation = Dimension::Operation;

std::string simplify(std::string_view text) { return Dimension::parse(text).print(); }

TEST_CASE("a dimension is printed in its normal form") {
  CHECK(simplify("64") == "64");
  CHECK(simplify("2*sequence + 1") == "2*sequence + 1");
  CHECK(simplify("1 + n + n") == "2*n + 1");
  CHECK(simplify("n - n") == "0");
  CHECK(simplify("m*n*2*m") == "2*m*m*n");
  CHECK(simplify("2*(n + 3) - m") == "-m + 2*n + 6");
  CHECK(simplify("-(n//2)") == "-(n//2)");
  CHECK(simplify("(n + 3)//4") == "(n + 3)//4");
  CHECK(simplify("(4*n + 6)//4") == "n + 1");
  CHECK(simplify("(n + 2*3 - 7)//1 + 1") == "n");
  CHECK(simplify("(6*n + 7) % 3") == "1");
  CHECK(simplify("n % 4") == "n % 4");
  CHECK(simplify("64*n*m//n") == "64*m");
  CHECK(simplify("Max(n, 1)") == "Max(1, n)");
  CHECK(simplify("Max(n, n)") == "n");
  CHECK(simplify("n**2*n**0") == "n**2");
  CHECK(simplify("-2**n") == "-2**n");
  CHECK(simplify("-n//2") == "(-n)//2");
  CHECK(simplify("(2*n + 4)*m") == simplify("2*(n + 2)*m"));
  CHECK(simplify("-7//2") == "-4");
  CHECK(simplify("-7 % 4") == "1");
  CHECK(simplify("-9223372036854775808") == "-9223372036854775808");
}

TEST_CASE("sympy's spelling in .pt2 files is read") {
  CHECK(simplify("Symbol('s77', positive=True, integer=True)") == "s77");
  CHECK(simplify("Add(Mod(Symbol('s77', positive=True, integer=True), Integer(3)), Max(Integer(3), Symbol('s77', "
                 "positive=True, integer=True)))") == "Max(3, s77) + s77 % 3");
  CHECK(simplify("FloorDiv(Add(Symbol('s17', positive=True), Symbol('s77')), Integer(2))") == "(s17 + s77)//2");
  CHECK(simplify("Mul(Integer(-1), Symbol('u0', integer=True))") == "-u0");
  CHECK(simplify("torch.utils._sympy.functions.FloorDiv(Pow(Symbol('a'), Integer(2)), 3)") == "a**2//3");
  CHECK(simplify("Max(1, a, b)") == simplify("Max(Max(1, a), b)"));
}

TEST_CASE("what is no dimension is refused") {
  for (const char* text : {"",
                           "n +",
                           "(n",
                           "n)",
                           "2n",
                           "n/2",
                           "1.5",
                           "Foo(n)",
                           "Max(n)",
                           "Mod(1, 2, 3)",
                           "n n",
                           "n**-1",
                           "9223372036854775808",
                           "9223372036854775807 + 1",
                           "4611686018427387904*2*n",
                           "n//0",
                           "3 % 0",
                           "Symbol(n)",
                           "Symbol('a b')",
                           "Integer(n)",
                           "2**64",
                           "%",
                           "\"n\""}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Dimension::parse(text), Error);
  }
  CHECK_THROWS_AS(Dimension::parse(std::string(1000, '(') + "n" + std::string(1000, ')')), Error);
  CHECK_THROWS_AS(Dimension::parse(std::string(1000, '-') + "n"), Error);
  CHECK_THROWS_AS(Dimension::parse(std::string(30'000, '1')), Error);
  CHECK_THROWS_AS(Dimension::named("odd name"), Error);
}

TEST_CASE("evaluation is Python's") {
  const DimensionBindings bindings = {{"n", -7}, {"m", 4}};
  CHECK(Dimension::parse("n//m").evaluate(bindings) == -2);
  CHECK(Dimension::parse("n % m").evaluate(bindings) == 1);
  CHECK(Dimension::parse("m % n").evaluate(bindings) == -3);
  CHECK(Dimension::parse("m**3 + Min(n, m)").evaluate(bindings) == 57);
  CHECK_FALSE(Dimension::parse("n + k").try_evaluate(bindings).has_value());
  CHECK_THROWS_AS(Dimension::parse("n + k").evaluate(bindings), Error);
  CHECK_THROWS_AS(Dimension::parse("m*n").evaluate({{"n", INT64_MAX}, {"m", 2}}), Error);
  CHECK(Dimension::parse("b*a + Max(c, a)").names() == std::vector<std::string>{"a", "b", "c"});
}

struct Pair {
  Dimension dimension;
  std::optional<int64_t> expected;  // by plain arithmetic; nothing where that divides by zero or overflows
};

std::optional<int64_t> apply_plainly(Operation operation, std::optional<int64_t> left, std::optional<int64_t> right) {
  if (!left || !right || std::abs(*left) > 100'000 || std::abs(*right) > 100'000) return std::nullopt;
  const int64_t a = *left, b = *right;
  switch (operation) {
    case Operation::add: return a + b;
    case Operation::multiply: return a * b;
    case Operation::floor_divide:
      return b == 0 ? std::nullopt : std::optional(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
    case Operation::modulo: return b == 0 ? std::nullopt : std::optional(((a % b) + b) % b);
    case Operation::maximum: return std::max(a, b);
    default: return std::min(a, b);
  }
}

TEST_CASE("the normal form keeps the value, and its text reads back equal") {
  std::mt19937 random(1);
  const DimensionBindings bindings = {{"n", 5}, {"m", -3}, {"k", 12}};
  for (int round = 0; round < 3000; ++round) {
    std::vector<Pair> pool = {{Dimension::named("n"), 5}, {Dimension::named("m"), -3}, {Dimension::named("k"), 12}};
    for (int i = -2; i <= 4; ++i) pool.push_back({Dimension(i), i});
    for (int step = 0; step < 6; ++step) {
      const Pair left = pool[random() % pool.size()];
      const Pair right = pool[random() % pool.size()];
      constexpr Operation kOperations[] = {Operation::add,    Operation::multiply, Operation::floor_divide,
                                           Operation::modulo, Operation::maximum,  Operation::minimum};
      const Operation operation = kOperations[random() % 6];
      const auto expected = apply_plainly(operation, left.expected, right.expected);
      if (!expected) continue;
      pool.push_back({Dimension::combine(operation, left.dimension, right.dimension), expected});
    }
    for (const Pair& pair : pool) {
      CAPTURE(pair.dimension.print());
      REQUIRE(pair.dimension.evaluate(bindings) == *pair.expected);
      REQUIRE(Dimension::parse(pair.dimension.print()) == pair.dimension);
    }
  }
}

TEST_CASE("a chain that grows without end is refused, not walked") {
  Dimension dimension = Dimension::named("n");
  const auto grow = [&] {
    for (int i = 0; i < 10'000; ++i) {
      dimension = Dimension::combine(i % 2 == 0 ? Operation::maximum : Operation::add, dimension, i + 1);
    }
  };
  CHECK_THROWS_AS(grow(), Error);
}

}  // namespace
}  // namespace lissome
