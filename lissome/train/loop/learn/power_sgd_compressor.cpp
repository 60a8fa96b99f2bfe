// See power_sgd_compressor.h. Ranks have to get the same bits from a sum on processors and threads that differ. So what
// they compute from sums alone (orthogonal columns, the product of both matrices) adds numbers in one order on all of
// them and does not go through a BLAS; products with a rank's own gradient may, because they are summed afterwards.
#include "lissome/train/loop/learn/power_sgd_compressor.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <random>

namespace lissome {
namespace {

constexpr int64_t kMostRank = 1024;

double multiply_columns(const float* matrix, int64_t rows, int64_t rank, int64_t a, int64_t b) {
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i)
    sum += static_cast<double>(matrix[i * rank + a]) * static_cast<double>(matrix[i * rank + b]);
  return sum;
}

void scale_column(float* matrix, int64_t rows, int64_t rank, int64_t column, double factor) {
  for (int64_t i = 0; i < rows; ++i)
    matrix[i * rank + column] = static_cast<float>(static_cast<double>(matrix[i * rank + column]) * factor);
}

// Takes the parts along the columns before it out of a column.
void subtract_earlier(float* matrix, int64_t rows, int64_t rank, int64_t column) {
  for (int64_t other = 0; other < column; ++other) {
    const double along = multiply_columns(matrix, rows, rank, column, other);
    for (int64_t i = 0; i < rows; ++i)
      matrix[i * rank + column] -= static_cast<float>(along * static_cast<double>(matrix[i * rank + other]));
  }
}

// Makes columns orthogonal with a length of 1 (modified Gram-Schmidt, twice: what is left of a column that nearly
// depends on those before it is not orthogonal to them after once). A column that depends on them becomes 0: what is
// left of it is rounding.
void orthogonalize(const at::Tensor& matrix) {
  constexpr double kRounding = 1e-6;
  const int64_t rows = matrix.size(0), rank = matrix.size(1);
  auto* data = matrix.mutable_data_ptr<float>();
  for (int64_t column = 0; column < rank; ++column) {
    double least = kRounding * std::sqrt(multiply_columns(data, rows, rank, column, column));
    for (int pass = 0; pass < 2; ++pass) {
      subtract_earlier(data, rows, rank, column);
      const double norm = std::sqrt(multiply_columns(data, rows, rank, column, column));
      scale_column(data, rows, rank, column, norm > least ? 1 / norm : 0);
      least = 0;
    }
  }
}

void fill_randomly(float* data, int64_t rows, int64_t rank, int64_t column, uint64_t seed) {
  std::mt19937_64 engine(seed * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(column));
  for (int64_t i = 0; i < rows; ++i)
    data[i * rank + column] = static_cast<float>(static_cast<double>(engine() >> 11) * 0x1p-52 - 1);
}

// `right` with columns of length 1, so that products neither overflow nor vanish with the square of the gradients. A
// column of zeros, as gradients of a lower rank leave, would stay so and begins anew.
at::Tensor prepare_right(const at::Tensor& right, uint64_t seed) {
  const at::Tensor unit = right.clone();
  auto* data = unit.mutable_data_ptr<float>();
  const int64_t rows = unit.size(0), rank = unit.size(1);
  for (int64_t column = 0; column < rank; ++column) {
    double squares = multiply_columns(data, rows, rank, column, column);
    if (!(squares > 0)) {
      fill_randomly(data, rows, rank, column, seed);
      squares = multiply_columns(data, rows, rank, column, column);
    }
    scale_column(data, rows, rank, column, 1 / std::sqrt(squares));
  }
  return unit;
}

// Adds factor * left * right^T to `sum`, [rows, columns].
void add_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right, float factor) {
  constexpr int64_t kRows = 16;  // of a part
  const at::Tensor across = right.t().contiguous();
  const int64_t columns = sum.size(1), rank = left.size(1);
  auto* to = sum.mutable_data_ptr<float>();
  const auto *a = left.const_data_ptr<float>(), *b = across.const_data_ptr<float>();
  at::parallel_for(0, sum.size(0), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t k = 0; k < rank; ++k) {
        const float scale = factor * a[row * rank + k];
        for (int64_t i = 0; i < columns; ++i) to[row * columns + i] += scale * b[k * columns + i];
      }
    }
  });
}

}  // namespace

PowerSgdCompressor::PowerSgdCompressor(const PowerSgdGradients& options, const NamedTensors& parameters)
    : dense_steps_(options.dense_steps) {
  if (options.rank < 1 || options.rank > kMostRank)
    throw_error(ErrorKind::usage, "the rank of powersgd must be 1 to ", kMostRank, ", not ", options.rank);
  int64_t lefts = 0, rights = 0;
  for (const auto& [name, weight] : parameters) {
    Matrix matrix{.name = name, .error = {}, .left = {}, .right = {}};
    const int64_t rows = weight.dim() < 2 ? 0 : weight.size(0);
    const int64_t columns = rows == 0 ? 0 : weight.numel() / rows;
    if ((rows + columns) * options.rank < rows * columns) {
      matrix.error = at::zeros({rows, columns}, at::kFloat);
      lefts += rows * options.rank, rights += columns * options.rank;
    }
    matrices_.push_back(std::move(matrix));
  }
  left_ = at::empty({lefts}, at::kFloat);
  right_ = at::zeros({rights}, at::kFloat);
  lefts = rights = 0;
  for (Matrix& matrix : matrices_) {
    if (!matrix.error.defined()) continue;
    const int64_t left = matrix.error.size(0) * options.rank, right = matrix.error.size(1) * options.rank;
    matrix.left = left_.narrow(0, lefts, left).view({-1, options.rank});
    matrix.right = right_.narrow(0, rights, right).view({-1, options.rank});
    lefts += left, rights += right;
  }
}

void PowerSgdCompressor::sum(Group& group, const std::vector<at::Tensor>& gradients, const std::string& what) {
  for (size_t i = 0; i < matrices_.size(); ++i) {
    Matrix& matrix = matrices_[i];
    if (!takes(i)) continue;
    matrix.error.add_(gradients[i].view(matrix.error.sizes()));
    at::mm_out(matrix.left, matrix.error, prepare_right(matrix.right, i));
  }
  group.sum(left_, what);
  for (size_t i = 0; i < matrices_.size(); ++i) {
    Matrix& matrix = matrices_[i];
    if (!takes(i)) continue;
    orthogonalize(matrix.left);
    at::mm_out(matrix.right, matrix.error.t(), matrix.left);
    // The errors of all ranks sum to that of the sum. Each rank leaves out its own projection, not an equal share of
    // the sum's, so that no rank's error grows by what only differs between ranks.
    add_product(matrix.error, matrix.left, matrix.right, -1);
  }
  group.sum(right_, what);
  for (size_t i = 0; i < matrices_.size(); ++i) {
    if (!takes(i)) continue;
    gradients[i].zero_();
    add_product(gradients[i].view(matrices_[i].error.sizes()), matrices_[i].left, matrices_[i].right, 1);
  }
}

NamedTensors PowerSgdCompressor::list_own_state() const {
  NamedTensors state;
  for (const Matrix& matrix : matrices_) {
    if (matrix.error.defined()) state.emplace_back(matrix.name + "/error", matrix.error);
  }
  return state;
}

NamedTensors PowerSgdCompressor::list_common_state() const {
  NamedTensors state;
  for (const Matrix& matrix : matrices_) {
    if (matrix.error.defined()) state.emplace_back(matrix.name + "/right", matrix.right);
  }
  return state;
}

}  // namespace lissome
