// Checks of what LAPACK is handed as it is: pivots of factorizations.
#include <ATen/core/ivalue.h>

#include <array>

#include "lissome/program/check_values_rows.h"

namespace lissome {
namespace {

using IValues = std::span<const c10::IValue>;

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
void check_pivots(IValues arguments) { require_pivots(arguments[0].toTensor(), arguments[1].toTensor(), false); }
// (self, LU_data, LU_pivots)
void check_pivots_behind(IValues arguments) {
  require_pivots(arguments[1].toTensor(), arguments[2].toTensor(), false);
}
// Negative ones mark blocks of two rows.
void check_block_pivots(IValues arguments) { require_pivots(arguments[0].toTensor(), arguments[1].toTensor(), true); }

}  // namespace

std::span<const ValueCheckRow> solver_check_rows() {
  static constexpr std::array<ValueCheckRow, 3> kRows = {{{"aten::linalg_lu_solve", check_pivots},
                                                          {"aten::lu_solve", check_pivots_behind},
                                                          {"aten::linalg_ldl_solve", check_block_pivots}}};
  return kRows;
}

}  // namespace lissome
