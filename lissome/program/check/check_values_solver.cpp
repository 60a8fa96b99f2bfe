// Checks of numbers at which a processor or LAPACK fails: pivots of factorizations, infinities in eigenvalue problems,
// the smallest integer divided by -1.
#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lissome/program/check/check_values_rows.h"

namespace lissome {
namespace {

// Rows that a factorization has exchanged, counted from 1.
void require_pivots(const at::Tensor& factors, const at::Tensor& pivots, bool may_be_negative) {
  require_value(factors.dim() >= 2 && pivots.dim() == factors.dim() - 1, "pivots ", print_sizes(pivots.sizes()),
                " for factors ", print_sizes(factors.sizes()));
  const int64_t rows = factors.size(-2);
  require_value(pivots.size(-1) == std::min(rows, factors.size(-1)), "there are ", pivots.size(-1), " pivots for ",
                print_sizes(factors.sizes()));
  require_range("pivots", pivots.to(at::kLong).abs(), 1, rows);
  if (!may_be_negative) require_range("pivots", pivots, 1, rows);
}

// (LU, pivots, ...)
void check_pivots(IValueSpan arguments) { require_pivots(arguments[0].toTensor(), arguments[1].toTensor(), false); }
// (self, LU_data, LU_pivots)
void check_pivots_behind(IValueSpan arguments) {
  require_pivots(arguments[1].toTensor(), arguments[2].toTensor(), false);
}
// Negative ones mark blocks of two rows.
void check_block_pivots(IValueSpan arguments) {
  require_pivots(arguments[0].toTensor(), arguments[1].toTensor(), true);
}

// (self, ...)
void check_finite(IValueSpan arguments) {
  require_value(at::isfinite(arguments[0].toTensor()).all().item().toBool(), "'self' holds NaN or infinity");
}

bool holds_integers(const c10::IValue& value) {
  return value.isInt() || (value.isTensor() && at::isIntegralType(value.toTensor().scalar_type(), false));
}

bool holds(const c10::IValue& value, int64_t number) {
  if (value.isInt()) return value.toInt() == number;
  return value.isTensor() && value.toTensor().eq(number).any().item().toBool();
}

// Of what is divided; a number is as wide as it gets.
int64_t smallest_of(const c10::IValue& value) {
  if (!value.isTensor()) return INT64_MIN;
  const size_t bits = 8 * value.toTensor().element_size();
  return at::isSignedType(value.toTensor().scalar_type()) ? INT64_MIN >> (64 - bits) : 0;
}

// (self, other, rounding_mode)
void check_truncation(IValueSpan arguments) {
  if (arguments[2].isNone() || arguments[2].toStringView() != "trunc") return;
  if (!holds_integers(arguments[0]) || !holds_integers(arguments[1]) || !holds(arguments[1], -1)) return;
  require_value(!holds(arguments[0], smallest_of(arguments[0])), "the smallest integer is divided by -1");
}

// (self, other)
void check_multiple(IValueSpan arguments) {
  for (const c10::IValue& argument : arguments.first(2)) {
    if (!holds_integers(argument) || !argument.isTensor() || !at::isSignedType(argument.toTensor().scalar_type()))
      continue;
    require_value(!holds(argument, smallest_of(argument)), "the smallest integer has no positive counterpart");
  }
}

// (self, p): p terms are summed for each element.
void check_order(IValueSpan arguments) {
  const int64_t order = arguments[1].toInt();
  require_value(order >= 1 && order <= 4096, "the order is ", order, ", allowed are 1 to 4096");
}

// Lists of tensors are made outside of the allocator, some before anything is looked at.
constexpr int64_t kMostParts = int64_t{1} << 16;

void require_parts(int64_t parts) {
  require_value(parts <= kMostParts, parts, " tensors in a list, allowed are ", kMostParts);
}

// (self, r) and (self, sections, ...)
void check_count(IValueSpan arguments) {
  if (arguments[1].isInt()) return require_parts(arguments[1].toInt());
  const at::Tensor& sections = arguments[1].toTensor();
  if (sections.dim() == 0) require_parts(sections.item().toLong());
}

int64_t size_along(const c10::IValue& tensor, const c10::IValue& dim) {
  return tensor.toTensor().dim() == 0 ? 1 : tensor.toTensor().size(dim.toInt());
}

// (self, dim)
void check_items(IValueSpan arguments) { require_parts(size_along(arguments[0], arguments[1])); }

// (self, size, dim)
void check_parts_of_size(IValueSpan arguments) {
  const int64_t size = arguments[1].toInt();
  if (size > 0) require_parts(size_along(arguments[0], arguments[2]) / size);
}

// (self, chunks, dim)
void check_chunks(IValueSpan arguments) {
  require_parts(std::min(size_along(arguments[0], arguments[2]), arguments[1].toInt()));
}

constexpr std::string_view kFar =
    ": zeta adds a term for each step from there up to 9; allowed are numbers from -4096 on, and integers";

// Zeta adds a term for each step from q up to 9; for integers below 1 it is infinite without a sum.
void check_steps(const c10::IValue& q) {
  constexpr double kLeast = -4096;
  const auto is_far = [](double number) { return number < kLeast && number != std::floor(number); };
  if (q.isScalar())
    return require_value(!q.isDouble() || !is_far(q.toDouble()), "'q' is ", q.toScalar().toDouble(), kFar);
  const at::Tensor& tensor = q.toTensor();
  if (!tensor.is_floating_point()) return;
  const at::Tensor numbers = tensor.to(at::kDouble);
  const bool far = numbers.lt(kLeast).logical_and(numbers.ne(numbers.floor())).any().item().toBool();
  require_value(!far, "an element is below -4096", kFar);
}

// (self, other): zeta of a scalar or a tensor
void check_zeta(IValueSpan arguments) { check_steps(arguments[1]); }

// (n, self), and in place (self, n); from the second derivative on it is a zeta
void check_polygamma(IValueSpan arguments) {
  const size_t order = arguments[0].isInt() ? 0 : 1;
  if (arguments[order].toInt() >= 2) check_steps(arguments[1 - order]);
}

}  // namespace

namespace {

// (self, n): the smallest integer has no positive counterpart, which a matrix is squared towards.
void check_exponent(IValueSpan arguments) {
  require_value(arguments[1].toInt() != INT64_MIN, "'n' is ", INT64_MIN, ", which has no positive counterpart");
}

}  // namespace

// (x, n): n steps of a recurrence for each element.
void check_degree(IValueSpan arguments) {
  constexpr double kMost = 4096;
  const c10::IValue& degree = arguments[1];
  const bool fits = degree.isTensor() ? degree.toTensor().to(at::kDouble).abs().le(kMost).all().item().toBool()
                                      : std::abs(degree.toScalar().toDouble()) <= kMost;
  require_value(fits, "'n' must lie within -", kMost, " and ", kMost);
}

std::span<const ValueCheckRow> solver_check_rows() {
  static constexpr std::array<ValueCheckRow, 39> kRows = {
      {{"aten::matrix_power", check_exponent},
       {"aten::linalg_matrix_power", check_exponent},
       {"aten::linalg_lu_solve", check_pivots},
       {"aten::lu_solve", check_pivots_behind},
       {"aten::linalg_ldl_solve", check_block_pivots},
       {"aten::linalg_eigvals", check_finite},
       {"aten::_linalg_eigvals", check_finite},
       {"aten::div.Tensor_mode", check_truncation},
       {"aten::div.Scalar_mode", check_truncation},
       {"aten::div_.Tensor_mode", check_truncation},
       {"aten::div_.Scalar_mode", check_truncation},
       {"aten::divide.Tensor_mode", check_truncation},
       {"aten::divide.Scalar_mode", check_truncation},
       {"aten::divide_.Tensor_mode", check_truncation},
       {"aten::divide_.Scalar_mode", check_truncation},
       {"aten::lcm", check_multiple},
       {"aten::lcm_", check_multiple},
       {"aten::combinations", check_count},
       {"aten::tensor_split.sections", check_count},
       {"aten::tensor_split.tensor_indices_or_sections", check_count},
       {"aten::hsplit.int", check_count},
       {"aten::vsplit.int", check_count},
       {"aten::dsplit.int", check_count},
       {"aten::unbind.int", check_items},
       {"aten::unbind_copy.int", check_items},
       {"aten::split.Tensor", check_parts_of_size},
       {"aten::split_copy.Tensor", check_parts_of_size},
       {"aten::unsafe_split.Tensor", check_parts_of_size},
       {"aten::chunk", check_chunks},
       {"aten::unsafe_chunk", check_chunks},
       {"aten::polygamma", check_polygamma},
       {"aten::polygamma_", check_polygamma},
       {"aten::special_polygamma", check_polygamma},
       {"aten::special_zeta", check_zeta},
       {"aten::special_zeta.self_scalar", check_zeta},
       {"aten::special_zeta.other_scalar", check_zeta},
       {"aten::mvlgamma", check_order},
       {"aten::mvlgamma_", check_order},
       {"aten::special_multigammaln", check_order}}};
  return kRows;
}

}  // namespace lissome
