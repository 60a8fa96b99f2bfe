// Inputs of kernel tests: reproducible numbers, and a comparison that knows how large the sums were.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace lissome {

// A small generator of its own: the same numbers with every compiler and library.
class TestNumbers {
 public:
  explicit TestNumbers(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>(state_ >> 32);
  }
  int64_t between(int64_t low, int64_t high) { return low + next() % (high - low + 1); }
  float real() { return static_cast<float>(next()) / 2147483648.0f - 1.0f; }  // [-1, 1)
  std::vector<float> reals(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = real();
    return values;
  }

 private:
  uint64_t state_;
};

// Both NaN, the same infinity, or closer than `tolerance` times the larger of 1 and |right|.
inline bool close_enough(float left, float right, float tolerance) {
  if (std::isnan(left) || std::isnan(right)) return std::isnan(left) && std::isnan(right);
  if (std::isinf(left) || std::isinf(right)) return left == right;
  return std::fabs(left - right) <= tolerance * std::fmax(1.0f, std::fabs(right));
}

inline int64_t count_differences(const std::vector<float>& left, const std::vector<float>& right, float tolerance) {
  int64_t count = 0;
  for (size_t i = 0; i < left.size(); ++i) count += !close_enough(left[i], right[i], tolerance);
  return count;
}

// [rows, columns], dense along one or the other, or along neither.
struct MatrixStrides {
  int64_t row, column;
};
inline MatrixStrides choose_strides(int64_t order, int64_t rows, int64_t columns) {
  if (order == 0) return {columns, 1};
  return order == 1 ? MatrixStrides{1, rows} : MatrixStrides{2 * columns, 2};
}

}  // namespace lissome
