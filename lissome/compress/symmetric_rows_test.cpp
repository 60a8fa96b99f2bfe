#include "lissome/compress/symmetric_rows.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

namespace lissome {
namespace {

TEST_CASE("rows are rounded half to even with a scale of the largest number, with and without factors") {
  for (const int64_t columns : {1, 2, 7, 8, 9, 31, 64, 203}) {
    for (const int64_t factor_rows : {0, 1, 5}) {
      CAPTURE(columns);
      CAPTURE(factor_rows);
      const at::Tensor rows = at::randn({5, columns});
      const at::Tensor factors =
          factor_rows > 0 ? at::rand({factor_rows, columns}, at::kDouble).add(0.5) : at::Tensor();
      const at::Tensor wide = rows.to(at::kDouble).mul(factors.defined() ? factors : at::full({1}, 1.0, at::kDouble));
      const SymmetricRows made = round_rows(rows, factors);
      if (columns == 1) CHECK(at::equal(made.numbers.abs(), at::full({5, 1}, 1, at::kChar)));
      // Few numbers may be multiples of a coarser scale by chance.
      for (int64_t row = 0; row < 5 && columns >= 7; ++row) {
        const at::Tensor scale = wide[row].abs().max().div(127);
        CHECK(at::equal(made.scales[row], scale.to(at::kFloat)));
        CHECK(at::equal(made.numbers[row], wide[row].div(scale).round().to(at::kChar)));
      }
    }
  }
}

TEST_CASE("rows of few levels keep them, and zeros have a scale") {
  const at::Tensor levels = at::randint(-3, 4, {4, 40}, at::kFloat);
  levels.select(1, 0).fill_(3), levels.select(1, 1).fill_(1);
  const SymmetricRows made = round_rows(levels.mul(0.37), {});
  CHECK(at::equal(made.numbers, levels.to(at::kChar)));
  const SymmetricRows zeros = round_rows(at::full({2, 9}, 0.0), {});
  CHECK(at::equal(zeros.numbers, at::full({2, 9}, 0, at::kChar)));
  CHECK(zeros.scales.min().item<float>() > 0);
}

}  // namespace
}  // namespace lissome
