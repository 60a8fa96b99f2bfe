// Checks of numbers at which a processor or LAPACK fails: pivots of factorizations, infinities in eigenvalue problems,
// the smallest integer divided by -1.
#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <array>

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
// Negative ones mark blocks of two rows, which LAPACK looks for from both ends.
void check_block_pivots(IValueSpan arguments) {
  const at::Tensor& pivots = arguments[1].toTensor();
  require_pivots(arguments[0].toTensor(), pivots, true);
  if (pivots.numel() == 0) return;
  const at::Tensor lines = read_integers("pivots", pivots).reshape({-1, pivots.size(-1)});
  const auto* const numbers = lines.const_data_ptr<int64_t>();
  const int64_t length = lines.size(1);
  for (int64_t line = 0; line < lines.size(0); ++line) {
    int64_t negative = 0;  // one behind the other
    for (int64_t i = 0; i <= length; ++i) {
      const bool is_block = i < length && numbers[line * length + i] < 0;
      require_value(is_block || negative % 2 == 0, "'pivots' holds a run of negative numbers of length ", negative,
                    "; allowed are pairs, which mark blocks of two rows");
      negative = is_block ? negative + 1 : 0;
    }
  }
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

// (self, n): the smallest integer has no positive counterpart, which a matrix is squared towards.
void check_exponent(IValueSpan arguments) {
  require_value(arguments[1].toInt() != INT64_MIN, "'n' is ", INT64_MIN, ", which has no positive counterpart");
}

// (self, from, to, generator): a loop of libtorch's ends for no wider one.
void check_draw(IValueSpan arguments) {
  require_value(arguments[1].toInt() != INT64_MAX, "'from' is ", INT64_MAX, "; numbers from there on do not exist");
}

}  // namespace

std::span<const ValueCheckRow> solver_check_rows() {
  static constexpr std::array<ValueCheckRow, 19> kRows = {{
      {"aten::random.from", check_draw},
      {"aten::random_.from", check_draw},
      {"aten::matrix_power", check_exponent},
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
  }};
  return kRows;
}

}  // namespace lissome
