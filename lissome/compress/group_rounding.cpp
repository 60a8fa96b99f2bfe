#include "lissome/compress/group_rounding.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cholesky_inverse.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/where.h>

#include <algorithm>

namespace lissome {
namespace {

constexpr int kTriedScales = 20;
constexpr double kLeastScale = 0.6;  // of the one that holds the largest weight
// Of the mean square of an input, added to each: what never varied in calibration still counts, and can be solved for.
constexpr double kDamping = 0.01;
constexpr int64_t kColumnBlock = 128;  // columns whose losses reach the columns behind them in one product

constexpr int kPasses = 2;  // over the columns, after each was rounded once

// Inputs that share a scale. Numbers of 8 bits lose little by sharing it with more.
int64_t choose_group(int64_t inputs, int bits) {
  if (bits == 8 && inputs % (4 * kGroup) == 0) return 4 * kGroup;
  return bits == 8 && inputs % (2 * kGroup) == 0 ? 2 * kGroup : kGroup;
}

double find_largest_number(int bits) { return bits == 4 ? 7 : 127; }

at::Tensor round_by(const at::Tensor& weight, const at::Tensor& scale, int bits) {
  const double most = find_largest_number(bits);
  return weight.div(scale).round().clamp(-most - 1, most);
}

// Of groups [outputs, groups, size], the scales [outputs, groups, 1]. Candidates: the one that holds the largest weight
// exactly, at the end of the numbers that reaches further, and smaller ones, which clip it.
at::Tensor choose_scales(const at::Tensor& groups, const at::Tensor& shares, int bits) {
  const at::Tensor largest = groups.gather(-1, groups.abs().argmax(-1, true));
  at::Tensor best, least;
  for (int i = 0; i < kTriedScales; ++i) {
    const double share = 1 - (1 - kLeastScale) * i / (kTriedScales - 1);
    at::Tensor scale = largest.mul(-share / (find_largest_number(bits) + 1)).to(at::kBFloat16).to(at::kFloat);
    scale = at::where(scale.abs().lt(1e-30), 1.0, scale).to(at::kFloat);
    const at::Tensor squares = round_by(groups, scale, bits).mul(scale).sub(groups).pow(2);
    const at::Tensor loss = (shares.defined() ? squares.mul(shares) : squares).sum(-1, true);
    best = best.defined() ? at::where(loss.lt(least), scale, best) : scale;
    least = least.defined() ? loss.minimum(least) : loss;
  }
  return best;
}

at::Tensor damp(const at::Tensor& squares) {
  const double mean = squares.mean().item().toDouble();
  return squares.add(mean > 0 ? kDamping * mean : 1);
}

// The upper factor of Cholesky of the inverse: row j says how the loss of column j reaches the columns behind it.
at::Tensor factor_inverse(const at::Tensor& products) {
  at::Tensor matrix = products.to(at::kDouble);
  matrix.diagonal().copy_(damp(matrix.diagonal()));
  return at::linalg_cholesky(at::cholesky_inverse(at::linalg_cholesky(matrix)), true).to(at::kFloat);
}

// One pass of coordinate descent: each number becomes the best one beside the others as they are.
void improve_numbers(GroupWeight& rounded, const at::Tensor& weight, const at::Tensor& products, int bits) {
  const int64_t inputs = weight.size(1), size = inputs / rounded.scales.size(1);
  const at::Tensor squares = damp(products.diagonal());
  at::Tensor slope = at::matmul(restore(rounded).sub(weight), products);  // half of the loss's derivative
  for (int64_t begin = 0; begin < inputs; begin += kColumnBlock) {
    const int64_t count = std::min(kColumnBlock, inputs - begin);
    const at::Tensor rows = products.narrow(0, begin, count), inside = rows.narrow(1, begin, count);
    const at::Tensor changes = weight.new_empty({weight.size(0), count});
    at::Tensor own = slope.narrow(1, begin, count).clone();
    for (int64_t i = 0; i < count; ++i) {
      const at::Tensor scale = rounded.scales.select(1, (begin + i) / size);
      at::Tensor number = rounded.numbers.select(1, begin + i);
      const at::Tensor step = own.select(1, i).div(squares[begin + i]);
      const at::Tensor better = round_by(number.mul(scale).sub(step), scale, bits);
      const at::Tensor change = better.sub(number).mul(scale);
      number.copy_(better);
      changes.select(1, i).copy_(change);
      own.addr_(change, inside[i]);
    }
    slope.add_(at::matmul(changes, rows));
  }
}

}  // namespace

GroupWeight round_to_nearest(const at::Tensor& weight, const at::Tensor& importance, int bits) {
  const int64_t size = choose_group(weight.size(1), bits);
  const at::Tensor groups = weight.reshape({weight.size(0), -1, size});
  const at::Tensor shares = importance.defined() ? damp(importance).reshape({1, -1, size}) : at::Tensor();
  const at::Tensor scales = choose_scales(groups, shares, bits);
  return {round_by(groups, scales, bits).reshape(weight.sizes()), scales.squeeze(-1)};
}

GroupWeight round_in_order(const at::Tensor& weight, const at::Tensor& products, int bits) {
  const int64_t inputs = weight.size(1), size = choose_group(inputs, bits);
  const at::Tensor spread = factor_inverse(products), shares = damp(products.diagonal()).reshape({1, -1, size});
  at::Tensor rest = weight.clone();  // what is still to be rounded, with the losses so far made up for
  GroupWeight result{at::empty_like(weight), weight.new_empty({weight.size(0), inputs / size})};
  for (int64_t begin = 0; begin < inputs; begin += kColumnBlock) {
    const int64_t end = std::min(begin + kColumnBlock, inputs);
    const at::Tensor losses = weight.new_empty({weight.size(0), end - begin});
    at::Tensor scale;
    for (int64_t column = begin; column < end; ++column) {
      if (column % size == 0) {
        const int64_t group = column / size;
        scale =
            choose_scales(rest.narrow(1, column, size).unsqueeze(1), shares.narrow(1, group, 1), bits).reshape({-1});
        result.scales.select(1, group).copy_(scale);
      }
      const at::Tensor current = rest.select(1, column), number = round_by(current, scale, bits);
      result.numbers.select(1, column).copy_(number);
      const at::Tensor loss = current.sub(number.mul(scale)).div(spread[column][column]);
      losses.select(1, column - begin).copy_(loss);
      rest.narrow(1, column, end - column).sub_(at::outer(loss, spread[column].narrow(0, column, end - column)));
    }
    if (end == inputs) break;
    rest.narrow(1, end, inputs - end)
        .sub_(at::matmul(losses, spread.narrow(0, begin, end - begin).narrow(1, end, inputs - end)));
  }
  for (int pass = 0; pass < kPasses; ++pass) improve_numbers(result, weight, products, bits);
  return result;
}

at::Tensor restore(const GroupWeight& rounded) {
  const int64_t outputs = rounded.scales.size(0), groups = rounded.scales.size(1);
  return rounded.numbers.reshape({outputs, groups, -1}).mul(rounded.scales.unsqueeze(-1)).reshape({outputs, -1});
}

at::Tensor pack_numbers(const at::Tensor& numbers, int bits) {
  if (bits == 8) return numbers.to(at::kChar).contiguous();
  const at::Tensor halves = at::where(numbers.lt(0), numbers.add(16), numbers).reshape({numbers.size(0), -1, 2});
  return halves.select(-1, 0).add(halves.select(-1, 1).mul(16)).to(at::kByte).contiguous();
}

at::Tensor pack_scales(const at::Tensor& scales) { return scales.to(at::kBFloat16).contiguous(); }

}  // namespace lissome
