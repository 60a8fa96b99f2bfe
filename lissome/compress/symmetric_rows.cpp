// Row by row, so that what is computed in f64 stays in cache: tensors of f64 of a large weight cost more in fresh pages
// than in arithmetic.
#include "lissome/compress/symmetric_rows.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>
#include <vector>

namespace lissome {
namespace {

constexpr int kMostLevels = 127;
constexpr size_t kStep = 8;                // loops of a fixed length become vectors
constexpr int64_t kNumbersOfPart = 32768;  // fewer are not worth a second thread

// f(first, count) for steps of kStep, whose count is constant, and one by one for the rest.
template <typename Function>
void each_step(size_t count, const Function& f) {
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) f(i, std::integral_constant<size_t, kStep>());
  for (; i < count; ++i) f(i, std::integral_constant<size_t, 1>());
}

void widen(const float* row, const double* factors, std::span<double> numbers) {
  each_step(numbers.size(), [&](size_t first, auto count) {
    for (size_t i = 0; i < count; ++i) numbers[first + i] = row[first + i];
    if (factors == nullptr) return;
    for (size_t i = 0; i < count; ++i) numbers[first + i] *= factors[first + i];
  });
}

double find_largest(std::span<const double> numbers) {
  double largest[kStep] = {};
  each_step(numbers.size(), [&](size_t first, auto count) {
    for (size_t i = 0; i < count; ++i) largest[i] = std::max(largest[i], std::abs(numbers[first + i]));
  });
  return std::max(*std::ranges::max_element(largest), 1e-30);
}

double find_scale(std::span<const double> numbers) {
  constexpr double kRoundedInFloat = 1e-3;  // of a level
  const double largest = find_largest(numbers);
  for (int levels = 1; levels < kMostLevels; ++levels) {
    const double per_scale = levels / largest;
    const bool fits = std::ranges::all_of(numbers, [&](double number) {
      return std::abs(number * per_scale - std::nearbyint(number * per_scale)) < kRoundedInFloat;
    });
    if (fits) return largest / levels;
  }
  return largest / kMostLevels;
}

void round_row(std::span<const double> numbers, double scale, int8_t* rounded) {
  constexpr double kOnes = 0x1.8p52;  // added, it leaves no bits below one
  each_step(numbers.size(), [&](size_t first, auto count) {
    for (size_t i = 0; i < count; ++i) {
      const double level = numbers[first + i] / scale + kOnes - kOnes;
      const double kept = std::min(std::max(level, -1.0 * kMostLevels), 1.0 * kMostLevels);
      rounded[first + i] = static_cast<int8_t>(static_cast<int32_t>(kept));
    }
  });
}

}  // namespace

SymmetricRows round_rows(const at::Tensor& rows, const at::Tensor& factors) {
  const int64_t columns = rows.size(1);
  SymmetricRows made{at::empty(rows.sizes(), at::kChar), at::empty({rows.size(0)}, at::kFloat)};
  const auto* const numbers = rows.const_data_ptr<float>();
  const auto* const factor = factors.defined() ? factors.const_data_ptr<double>() : nullptr;
  const int64_t factor_rows = factors.defined() ? factors.size(0) : 0;
  auto* const rounded = made.numbers.mutable_data_ptr<int8_t>();
  auto* const scales = made.scales.mutable_data_ptr<float>();
  const int64_t rows_of_part = kNumbersOfPart / std::max<int64_t>(columns, 1) + 1;
  at::parallel_for(0, rows.size(0), rows_of_part, [&](int64_t begin, int64_t end) {
    std::vector<double> wide(static_cast<size_t>(columns));
    for (int64_t row = begin; row < end; ++row) {
      const double* own = factor == nullptr ? nullptr : factor + (factor_rows > 1 ? row * columns : 0);
      widen(numbers + row * columns, own, wide);
      const double scale = find_scale(wide);
      round_row(wide, scale, rounded + row * columns);
      scales[row] = static_cast<float>(scale);
    }
  });
  return made;
}

}  // namespace lissome
