// Arithmetic on Python numbers, as Python does it: an int stays an int, division floors, modulo has the divisor's sign,
// true division and math functions give floats, and/or/xor of bools are bools. What Python would raise (division by
// zero, a domain error) and what leaves 64 bits is an error here, never a wrapped number.
#include "lissome/program/op/scalar.h"

#include <ATen/core/ivalue.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "lissome/base.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

using c10::IValue;
using Stack = std::vector<IValue>;

std::string describe(const IValue& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

[[noreturn]] void refuse(std::string_view what, const IValue& a) {
  throw_error(ErrorKind::invalid_input, what, " of ", describe(a));
}

[[noreturn]] void refuse(std::string_view what, const IValue& a, const IValue& b) {
  throw_error(ErrorKind::invalid_input, what, " of ", describe(a), " and ", describe(b));
}

bool is_integer(const IValue& value) { return value.isInt() || value.isBool(); }

int64_t as_integer(const IValue& value) {
  if (value.isBool()) return value.toBool() ? 1 : 0;
  if (value.isInt()) return value.toInt();
  refuse("an integer is needed instead", value);
}

double as_double(const IValue& value) {
  if (value.isDouble()) return value.toDouble();
  if (is_integer(value)) return static_cast<double>(as_integer(value));
  refuse("a real number is needed instead", value);
}

bool as_truth(const IValue& value) { return value.isDouble() ? value.toDouble() != 0 : as_integer(value) != 0; }

IValue to_integer(double number, const IValue& original) {
  // 2^63 is exact as a double; everything in [-2^63, 2^63) fits.
  if (!(number >= -0x1p63 && number < 0x1p63)) refuse("no 64-bit integer holds the value", original);
  return static_cast<int64_t>(number);
}

int64_t multiply_checked(int64_t a, int64_t b, std::string_view what, const IValue& left, const IValue& right) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) refuse(what, left, right);
  return result;
}

IValue add(const IValue& a, const IValue& b) {
  if (!is_integer(a) || !is_integer(b)) return as_double(a) + as_double(b);
  int64_t result = 0;
  if (__builtin_add_overflow(as_integer(a), as_integer(b), &result)) refuse("integer overflow in the sum", a, b);
  return result;
}

IValue subtract(const IValue& a, const IValue& b) {
  if (!is_integer(a) || !is_integer(b)) return as_double(a) - as_double(b);
  int64_t result = 0;
  if (__builtin_sub_overflow(as_integer(a), as_integer(b), &result)) refuse("integer overflow in the difference", a, b);
  return result;
}

IValue multiply(const IValue& a, const IValue& b) {
  if (!is_integer(a) || !is_integer(b)) return as_double(a) * as_double(b);
  return multiply_checked(as_integer(a), as_integer(b), "integer overflow in the product", a, b);
}

struct Division {
  double quotient = 0, remainder = 0;
};

// Both at once, so that quotient * b + remainder is a, as Python has it.
Division divide_floats(const IValue& a, const IValue& b) {
  const double x = as_double(a), y = as_double(b);
  if (y == 0) refuse("division by zero", a, b);
  double remainder = std::fmod(x, y);
  double quotient = (x - remainder) / y;
  if (remainder != 0) {
    if ((y < 0) != (remainder < 0)) {
      remainder += y;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, y);
  }
  if (quotient == 0) return {std::copysign(0.0, x / y), remainder};
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1;
  return {floored, remainder};
}

IValue floor_divide(const IValue& a, const IValue& b) {
  if (!is_integer(a) || !is_integer(b)) return divide_floats(a, b).quotient;
  const int64_t x = as_integer(a), y = as_integer(b);
  if (y == 0) refuse("division by zero", a, b);
  if (y == -1) return subtract(IValue(int64_t{0}), a);
  const int64_t quotient = x / y;
  return quotient - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
}

IValue modulo(const IValue& a, const IValue& b) {
  if (!is_integer(a) || !is_integer(b)) return divide_floats(a, b).remainder;
  const int64_t x = as_integer(a), y = as_integer(b);
  if (y == 0) refuse("modulo by zero", a, b);
  if (y == -1) return int64_t{0};
  const int64_t remainder = x % y;
  return remainder + ((remainder != 0 && (remainder < 0) != (y < 0)) ? y : 0);
}

IValue true_divide(const IValue& a, const IValue& b) {
  if (as_double(b) == 0) refuse("division by zero", a, b);
  if (!is_integer(a) || !is_integer(b)) return as_double(a) / as_double(b);
  // Integers beyond 2^53 have no exact double; the wider type keeps them exact until the division.
  return static_cast<double>(static_cast<long double>(as_integer(a)) / static_cast<long double>(as_integer(b)));
}

IValue power_float(const IValue& a, const IValue& b) {
  const double x = as_double(a), y = as_double(b);
  if (x == 0 && y < 0) refuse("zero to a negative power", a, b);
  const double result = std::pow(x, y);
  if (std::isnan(result) && !std::isnan(x) && !std::isnan(y)) refuse("no real power", a, b);
  if (std::isinf(result) && std::isfinite(x) && std::isfinite(y)) refuse("overflow in the power", a, b);
  return result;
}

IValue power(const IValue& a, const IValue& b) {
  if (!is_integer(a) || !is_integer(b) || as_integer(b) < 0) return power_float(a, b);
  int64_t base = as_integer(a), exponent = as_integer(b), result = 1;
  while (exponent > 0) {
    if (exponent & 1) result = multiply_checked(result, base, "integer overflow in the power", a, b);
    exponent >>= 1;
    if (exponent > 0) base = multiply_checked(base, base, "integer overflow in the power", a, b);
  }
  return result;
}

IValue negate(const IValue& a) {
  if (a.isDouble()) return -a.toDouble();
  return subtract(IValue(int64_t{0}), a);
}

IValue keep(const IValue& a) { return a.isDouble() ? a : IValue(as_integer(a)); }

IValue absolute(const IValue& a) {
  if (a.isDouble()) return std::fabs(a.toDouble());
  return as_integer(a) < 0 ? negate(a) : keep(a);
}

// Exact between ints and floats: long double holds every int64 and every double.
long double as_exact(const IValue& value) {
  return value.isDouble() ? static_cast<long double>(value.toDouble()) : static_cast<long double>(as_integer(value));
}

IValue equal(const IValue& a, const IValue& b) { return as_exact(a) == as_exact(b); }
IValue not_equal(const IValue& a, const IValue& b) { return as_exact(a) != as_exact(b); }
IValue less(const IValue& a, const IValue& b) { return as_exact(a) < as_exact(b); }
IValue less_equal(const IValue& a, const IValue& b) { return as_exact(a) <= as_exact(b); }
IValue greater(const IValue& a, const IValue& b) { return as_exact(a) > as_exact(b); }
IValue greater_equal(const IValue& a, const IValue& b) { return as_exact(a) >= as_exact(b); }

// torch.sym_max gives a float as soon as one side is a float.
IValue choose(bool second, const IValue& a, const IValue& b) {
  const IValue& chosen = second ? b : a;
  return a.isDouble() || b.isDouble() ? IValue(as_double(chosen)) : keep(chosen);
}
IValue maximum(const IValue& a, const IValue& b) { return choose(as_exact(b) > as_exact(a), a, b); }
IValue minimum(const IValue& a, const IValue& b) { return choose(as_exact(b) < as_exact(a), a, b); }

template <typename Combine>
IValue combine_bits(const IValue& a, const IValue& b, Combine combine) {
  if (a.isBool() && b.isBool()) return combine(as_integer(a), as_integer(b)) != 0;
  return combine(as_integer(a), as_integer(b));
}
IValue bit_and(const IValue& a, const IValue& b) {
  return combine_bits(a, b, [](int64_t x, int64_t y) { return x & y; });
}
IValue bit_or(const IValue& a, const IValue& b) {
  return combine_bits(a, b, [](int64_t x, int64_t y) { return x | y; });
}
IValue bit_xor(const IValue& a, const IValue& b) {
  return combine_bits(a, b, [](int64_t x, int64_t y) { return x ^ y; });
}
IValue invert(const IValue& a) { return ~as_integer(a); }
IValue logical_not(const IValue& a) { return !as_truth(a); }

IValue shift_left(const IValue& a, const IValue& b) {
  const int64_t x = as_integer(a), count = as_integer(b);
  if (count < 0) refuse("a shift by a negative count", a, b);
  if (x == 0) return int64_t{0};
  if (count > 62) refuse("integer overflow in the left shift", a, b);
  return multiply_checked(x, int64_t{1} << count, "integer overflow in the left shift", a, b);
}

IValue shift_right(const IValue& a, const IValue& b) {
  const int64_t x = as_integer(a), count = as_integer(b);
  if (count < 0) refuse("a shift by a negative count", a, b);
  return x >> std::min<int64_t>(count, 63);
}

IValue to_float(const IValue& a) { return as_double(a); }
IValue to_truth(const IValue& a) { return as_truth(a); }
IValue truncate(const IValue& a) { return a.isDouble() ? to_integer(std::trunc(a.toDouble()), a) : keep(a); }
IValue floor_number(const IValue& a) { return a.isDouble() ? to_integer(std::floor(a.toDouble()), a) : keep(a); }
IValue ceil_number(const IValue& a) { return a.isDouble() ? to_integer(std::ceil(a.toDouble()), a) : keep(a); }

// 10^-digits
int64_t find_unit(int64_t digits, const IValue& a) {
  if (digits < -18) refuse("rounding to too many digits", a);
  return power(IValue(int64_t{10}), IValue(-digits)).toInt();
}

IValue round_integer(const IValue& a, int64_t digits) {
  if (digits >= 0) return keep(a);
  const IValue unit(find_unit(digits, a));
  const int64_t below = modulo(a, unit).toInt(), half = unit.toInt() / 2;
  const IValue floored = subtract(a, IValue(below));
  const bool odd = modulo(floor_divide(floored, unit), IValue(int64_t{2})).toInt() != 0;
  return below > half || (below == half && odd) ? add(floored, unit) : floored;
}

// round(x): half to even, an int. round(x, digits): the decimal that is nearest to the exact value, a float.
IValue round_number(const IValue& a, const IValue& digits) {
  if (!a.isDouble()) return round_integer(a, digits.isNone() ? 0 : digits.toInt());
  const double number = a.toDouble();
  if (digits.isNone()) return to_integer(std::nearbyint(number), a);
  if (!std::isfinite(number) || digits.toInt() > 340) return number;
  if (digits.toInt() < 0) {
    const auto unit = static_cast<double>(find_unit(digits.toInt(), a));
    return std::nearbyint(number / unit) * unit;
  }
  std::string text(700, '\0');
  std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(digits.toInt()), number);
  return std::strtod(text.c_str(), nullptr);
}

// A math function raises where it has no value, and where a finite argument leaves the range.
template <double (*function)(double)>
IValue apply_math(const IValue& a) {
  const double number = as_double(a);
  const double result = function(number);
  if (std::isnan(result) && !std::isnan(number)) refuse("math domain error", a);
  if (std::isinf(result) && std::isfinite(number)) refuse("math range error", a);
  return result;
}

template <IValue (*function)(const IValue&)>
void unary(Stack& stack) {
  stack.back() = function(stack.back());
}

template <IValue (*function)(const IValue&, const IValue&)>
void binary(Stack& stack) {
  IValue right = std::move(stack.back());
  stack.pop_back();
  stack.back() = function(stack.back(), right);
}

void choose_if(Stack& stack) {
  IValue otherwise = std::move(stack.back());
  stack.pop_back();
  IValue then = std::move(stack.back());
  stack.pop_back();
  stack.back() = as_truth(stack.back()) ? std::move(then) : std::move(otherwise);
}

// The element itself: an alias of it, which effects.cpp knows.
void get_item(Stack& stack) {
  int64_t index = as_integer(stack.back());
  stack.pop_back();
  if (!stack.back().isList())
    throw_error(ErrorKind::invalid_input, "an item of ", stack.back().tagKind(), ", where a list is needed");
  const auto items = stack.back().toListRef();
  const auto count = static_cast<int64_t>(items.size());
  if (index < -count || index >= count) {
    throw_error(ErrorKind::invalid_input, "item ", index, " of a list of ", count);
  }
  IValue item = items[static_cast<size_t>(index < 0 ? index + count : index)];
  stack.back() = std::move(item);
}

struct ScalarRow {
  const char* name;
  const char* signature;
  BoxedKernel kernel;
  std::vector<std::string_view> targets;  // Python's spellings
};

constexpr const char* kUnary = "(Scalar a) -> Scalar";
constexpr const char* kBinary = "(Scalar a, Scalar b) -> Scalar";
constexpr const char* kCompare = "(Scalar a, Scalar b) -> bool";
constexpr const char* kToFloat = "(Scalar a) -> float";
constexpr const char* kToInt = "(Scalar a) -> int";

const std::vector<ScalarRow>& list_rows() {
  static const std::vector<ScalarRow> rows = {
      {"sym_add", kBinary, binary<add>, {"_operator.add", "_operator.iadd"}},
      {"sym_sub", kBinary, binary<subtract>, {"_operator.sub", "_operator.isub"}},
      {"sym_mul", kBinary, binary<multiply>, {"_operator.mul", "_operator.imul"}},
      {"sym_floordiv", kBinary, binary<floor_divide>, {"_operator.floordiv", "_operator.ifloordiv"}},
      {"sym_truediv", "(Scalar a, Scalar b) -> float", binary<true_divide>, {"_operator.truediv"}},
      {"sym_mod", kBinary, binary<modulo>, {"_operator.mod", "_operator.imod"}},
      {"sym_pow", kBinary, binary<power>, {"_operator.pow", "builtins.pow"}},
      {"sym_neg", kUnary, unary<negate>, {"_operator.neg"}},
      {"sym_pos", kUnary, unary<keep>, {"_operator.pos"}},
      {"sym_abs", kUnary, unary<absolute>, {"_operator.abs", "builtins.abs"}},
      {"sym_max", kBinary, binary<maximum>, {"torch.sym_max", "builtins.max"}},
      {"sym_min", kBinary, binary<minimum>, {"torch.sym_min", "builtins.min"}},
      {"sym_eq", kCompare, binary<equal>, {"_operator.eq"}},
      {"sym_ne", kCompare, binary<not_equal>, {"_operator.ne"}},
      {"sym_lt", kCompare, binary<less>, {"_operator.lt"}},
      {"sym_le", kCompare, binary<less_equal>, {"_operator.le"}},
      {"sym_gt", kCompare, binary<greater>, {"_operator.gt"}},
      {"sym_ge", kCompare, binary<greater_equal>, {"_operator.ge"}},
      {"sym_and", kBinary, binary<bit_and>, {"_operator.and_", "_operator.iand"}},
      {"sym_or", kBinary, binary<bit_or>, {"_operator.or_", "_operator.ior"}},
      {"sym_xor", kBinary, binary<bit_xor>, {"_operator.xor", "_operator.ixor"}},
      {"sym_not", "(Scalar a) -> bool", unary<logical_not>, {"torch.sym_not", "_operator.not_"}},
      {"sym_invert", kUnary, unary<invert>, {"_operator.invert", "_operator.inv"}},
      {"sym_lshift", kBinary, binary<shift_left>, {"_operator.lshift"}},
      {"sym_rshift", kBinary, binary<shift_right>, {"_operator.rshift"}},
      {"sym_float", kToFloat, unary<to_float>, {"torch.sym_float", "builtins.float"}},
      {"sym_int", kToInt, unary<truncate>, {"torch.sym_int", "builtins.int"}},
      {"sym_bool", "(Scalar a) -> bool", unary<to_truth>, {"builtins.bool", "_operator.truth"}},
      {"sym_trunc", kToInt, unary<truncate>, {"math.trunc"}},
      {"sym_floor", kToInt, unary<floor_number>, {"math.floor"}},
      {"sym_ceil", kToInt, unary<ceil_number>, {"math.ceil"}},
      {"sym_round", "(Scalar a, int? digits=None) -> Scalar", binary<round_number>, {"builtins.round"}},
      {"sym_ite", "(Scalar condition, Scalar a, Scalar b) -> Scalar", choose_if, {"torch.sym_ite"}},
      {"sym_sqrt", kToFloat, unary<apply_math<std::sqrt>>, {"torch.sym_sqrt", "torch._sym_sqrt", "math.sqrt"}},
      {"sym_sin", kToFloat, unary<apply_math<std::sin>>, {"torch._sym_sin", "math.sin"}},
      {"sym_cos", kToFloat, unary<apply_math<std::cos>>, {"torch._sym_cos", "math.cos"}},
      {"sym_tan", kToFloat, unary<apply_math<std::tan>>, {"torch._sym_tan", "math.tan"}},
      {"sym_asin", kToFloat, unary<apply_math<std::asin>>, {"torch._sym_asin", "math.asin"}},
      {"sym_acos", kToFloat, unary<apply_math<std::acos>>, {"torch._sym_acos", "math.acos"}},
      {"sym_atan", kToFloat, unary<apply_math<std::atan>>, {"torch._sym_atan", "math.atan"}},
      {"sym_sinh", kToFloat, unary<apply_math<std::sinh>>, {"torch._sym_sinh", "math.sinh"}},
      {"sym_cosh", kToFloat, unary<apply_math<std::cosh>>, {"torch._sym_cosh", "math.cosh"}},
      {"sym_tanh", kToFloat, unary<apply_math<std::tanh>>, {"torch._sym_tanh", "math.tanh"}},
      {"sym_exp", kToFloat, unary<apply_math<std::exp>>, {"torch._sym_exp", "math.exp"}},
      {"sym_log", kToFloat, unary<apply_math<std::log>>, {"torch._sym_log", "math.log"}},
      {"sym_log2", kToFloat, unary<apply_math<std::log2>>, {"torch._sym_log2", "math.log2"}},
      {"sym_log10", kToFloat, unary<apply_math<std::log10>>, {"math.log10"}},
      {"math_pow", "(Scalar a, Scalar b) -> float", binary<power_float>, {"math.pow"}},
      {"getitem", "(Any list, int index) -> Any", get_item, {"_operator.getitem"}},
  };
  return rows;
}

}  // namespace

std::string find_scalar_op(std::string_view python_target) {
  for (const ScalarRow& row : list_rows()) {
    for (const std::string_view target : row.targets) {
      if (target == python_target) return std::string("lissome::") + row.name;
    }
  }
  return {};
}

std::vector<std::string_view> list_scalar_targets() {
  std::vector<std::string_view> targets;
  for (const ScalarRow& row : list_rows()) targets.insert(targets.end(), row.targets.begin(), row.targets.end());
  return targets;
}

std::vector<OpRow> list_scalar_ops() {
  std::vector<OpRow> rows;
  for (const ScalarRow& row : list_rows()) {
    rows.push_back({std::string(row.name) + row.signature, box_kernel(row.kernel)});
  }
  return rows;
}

}  // namespace lissome
