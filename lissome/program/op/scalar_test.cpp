// Python's numbers: each row was computed by Python itself.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <doctest/doctest.h>

#include <cmath>

#include "lissome/program.h"
#include "lissome/program/op/scalar.h"

namespace lissome {
namespace {

c10::IValue call(std::string_view name, std::vector<c10::IValue> arguments) {
  const Op op = Op::find(name);
  op.handle().callBoxed(arguments);
  REQUIRE(arguments.size() == 1);
  return arguments[0];
}

// Same kind and same value: 1 is not 1.0.
bool is_same(const c10::IValue& left, const c10::IValue& right) {
  if (left.isDouble() && right.isDouble()) {
    return (std::isnan(left.toDouble()) && std::isnan(right.toDouble())) ||
           (left.toDouble() == right.toDouble() && std::signbit(left.toDouble()) == std::signbit(right.toDouble()));
  }
  return left.tagKind() == right.tagKind() && left == right;
}

constexpr int64_t kMost = INT64_MAX, kLeast = INT64_MIN;

}  // namespace

TEST_CASE("scalar ops follow Python") {
  struct Row {
    const char* op;
    std::vector<c10::IValue> arguments;
    c10::IValue expected;
  };
  const std::vector<Row> rows = {
      {"lissome::sym_add", {2, 3}, 5},
      {"lissome::sym_add", {2, 0.5}, 2.5},
      {"lissome::sym_add", {true, true}, 2},
      {"lissome::sym_sub", {2, 5}, -3},
      {"lissome::sym_mul", {-4, 6}, -24},
      {"lissome::sym_mul", {4, 0.25}, 1.0},
      {"lissome::sym_floordiv", {7, 2}, 3},
      {"lissome::sym_floordiv", {-7, 2}, -4},
      {"lissome::sym_floordiv", {7, -2}, -4},
      {"lissome::sym_floordiv", {-7, -2}, 3},
      {"lissome::sym_floordiv", {6, -2}, -3},
      {"lissome::sym_floordiv", {7.5, 2}, 3.0},
      {"lissome::sym_floordiv", {-7.5, 2}, -4.0},
      {"lissome::sym_floordiv", {1.0, 0.1}, 9.0},
      {"lissome::sym_floordiv", {-0.0, 2.0}, -0.0},
      {"lissome::sym_mod", {7, 3}, 1},
      {"lissome::sym_mod", {-7, 3}, 2},
      {"lissome::sym_mod", {7, -3}, -2},
      {"lissome::sym_mod", {-7, -3}, -1},
      {"lissome::sym_mod", {-7.5, 2}, 0.5},
      {"lissome::sym_mod", {6.0, -2.0}, -0.0},
      {"lissome::sym_mod", {kLeast, -1}, 0},
      {"lissome::sym_truediv", {7, 2}, 3.5},
      {"lissome::sym_truediv", {6, 3}, 2.0},
      {"lissome::sym_truediv", {kMost, 3}, 3.0744573456182584e+18},
      {"lissome::sym_pow", {2, 10}, 1024},
      {"lissome::sym_pow", {-3, 3}, -27},
      {"lissome::sym_pow", {2, -2}, 0.25},
      {"lissome::sym_pow", {2.0, 3}, 8.0},
      {"lissome::sym_pow", {0, 0}, 1},
      {"lissome::math_pow", {2, 3}, 8.0},
      {"lissome::sym_neg", {5}, -5},
      {"lissome::sym_neg", {true}, -1},
      {"lissome::sym_pos", {true}, 1},
      {"lissome::sym_abs", {-5}, 5},
      {"lissome::sym_abs", {-2.5}, 2.5},
      {"lissome::sym_max", {2, 3}, 3},
      {"lissome::sym_max", {2, 1.5}, 2.0},
      {"lissome::sym_min", {2, 3}, 2},
      {"lissome::sym_min", {2, 1.5}, 1.5},
      {"lissome::sym_eq", {2, 2.0}, true},
      {"lissome::sym_eq", {(int64_t{1} << 53) + 1, 9007199254740992.0}, false},
      {"lissome::sym_ne", {2, 3}, true},
      {"lissome::sym_lt", {2, 3}, true},
      {"lissome::sym_le", {3, 3}, true},
      {"lissome::sym_gt", {2, 3}, false},
      {"lissome::sym_ge", {3, 3.5}, false},
      {"lissome::sym_and", {true, false}, false},
      {"lissome::sym_and", {6, 3}, 2},
      {"lissome::sym_or", {true, false}, true},
      {"lissome::sym_or", {6, 3}, 7},
      {"lissome::sym_xor", {true, true}, false},
      {"lissome::sym_xor", {6, 3}, 5},
      {"lissome::sym_not", {0}, true},
      {"lissome::sym_not", {true}, false},
      {"lissome::sym_invert", {5}, -6},
      {"lissome::sym_lshift", {3, 4}, 48},
      {"lissome::sym_rshift", {-5, 1}, -3},
      {"lissome::sym_rshift", {-5, 100}, -1},
      {"lissome::sym_float", {3}, 3.0},
      {"lissome::sym_int", {-2.7}, -2},
      {"lissome::sym_int", {true}, 1},
      {"lissome::sym_bool", {2}, true},
      {"lissome::sym_trunc", {2.7}, 2},
      {"lissome::sym_floor", {-2.1}, -3},
      {"lissome::sym_ceil", {2.1}, 3},
      {"lissome::sym_ceil", {7}, 7},
      {"lissome::sym_round", {2.5, {}}, 2},
      {"lissome::sym_round", {3.5, {}}, 4},
      {"lissome::sym_round", {-2.5, {}}, -2},
      {"lissome::sym_round", {2.675, 2}, 2.67},
      {"lissome::sym_round", {1234.5678, 2}, 1234.57},
      {"lissome::sym_round", {1250.0, -2}, 1200.0},
      {"lissome::sym_round", {15, -1}, 20},
      {"lissome::sym_round", {25, -1}, 20},
      {"lissome::sym_round", {-26, -1}, -30},
      {"lissome::sym_ite", {true, 1, 2}, 1},
      {"lissome::sym_ite", {false, 1, 2}, 2},
      {"lissome::sym_sqrt", {16}, 4.0},
      {"lissome::sym_exp", {0}, 1.0},
      {"lissome::sym_log", {1}, 0.0},
      {"lissome::sym_log2", {8}, 3.0},
      {"lissome::sym_cos", {0}, 1.0},
      {"lissome::sym_tanh", {0}, 0.0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.op);
    CAPTURE(row.arguments);
    const c10::IValue result = call(row.op, row.arguments);
    CAPTURE(result);
    CHECK(is_same(result, row.expected));
  }
}

TEST_CASE("scalar ops refuse what Python raises for and what leaves 64 bits") {
  const std::vector<std::pair<const char*, std::vector<c10::IValue>>> rows = {
      {"lissome::sym_add", {kMost, 1}},     {"lissome::sym_sub", {kLeast, 1}},
      {"lissome::sym_mul", {kMost, 2}},     {"lissome::sym_neg", {kLeast}},
      {"lissome::sym_abs", {kLeast}},       {"lissome::sym_floordiv", {kLeast, -1}},
      {"lissome::sym_floordiv", {1, 0}},    {"lissome::sym_mod", {1, 0}},
      {"lissome::sym_mod", {1.0, 0.0}},     {"lissome::sym_truediv", {1, 0}},
      {"lissome::sym_pow", {10, 19}},       {"lissome::sym_pow", {0, -1}},
      {"lissome::sym_pow", {-1.0, 0.5}},    {"lissome::sym_lshift", {1, 63}},
      {"lissome::sym_lshift", {1, -1}},     {"lissome::sym_int", {1e19}},
      {"lissome::sym_floor", {INFINITY}},   {"lissome::sym_ceil", {NAN}},
      {"lissome::sym_sqrt", {-1}},          {"lissome::sym_log", {0}},
      {"lissome::sym_exp", {1000.0}},       {"lissome::sym_and", {1.5, 1}},
      {"lissome::sym_round", {25, kLeast}}, {"lissome::sym_round", {2.5, kLeast}},
  };
  for (const auto& [op, arguments] : rows) {
    CAPTURE(op);
    CAPTURE(arguments);
    CHECK_THROWS_AS(call(op, arguments), Error);
  }
}

TEST_CASE("lists give their items, from the end too") {
  const c10::List<int64_t> sizes({4, 5, 6});
  CHECK(call("lissome::getitem", {sizes, 1}).toInt() == 5);
  CHECK(call("lissome::getitem", {sizes, -1}).toInt() == 6);
  CHECK_THROWS_AS(call("lissome::getitem", {sizes, 3}), Error);
  CHECK_THROWS_WITH_AS(call("lissome::getitem", {5, 0}),
                       doctest::Contains("an item of Int, where a list is needed"), Error);
}

TEST_CASE("Python's spellings lead to ops that exist") {
  CHECK(find_scalar_op("_operator.floordiv") == "lissome::sym_floordiv");
  CHECK(find_scalar_op("math.trunc") == "lissome::sym_trunc");
  CHECK(find_scalar_op("torch.sym_max") == "lissome::sym_max");
  CHECK(find_scalar_op("os.system").empty());
  for (const std::string_view target : list_scalar_targets()) {
    CHECK(Op::try_find(find_scalar_op(target)) != nullptr);
  }
}

TEST_CASE("an unknown op is refused by name, with the nearest known one") {
  try {
    Op::find("aten::lineer");
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::unsupported);
    CHECK(error.message().find("aten::lineer") != std::string::npos);
    CHECK(error.message().find("aten::linear") != std::string::npos);
  }
}

TEST_CASE("ops are interned: the default overload and its short name are one") {
  CHECK(Op::find("aten::relu.default") == Op::find("aten::relu"));
  CHECK_FALSE(Op::find("aten::relu") == Op::find("aten::gelu"));
  CHECK(Op::find("aten::linear").argument_index("bias") == 2);
  CHECK(Op::find("aten::linear").argument_index("none") == -1);
  CHECK(Op::control(Control::cond).name() == "lissome::cond");
}

}  // namespace lissome
