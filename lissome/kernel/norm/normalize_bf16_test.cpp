// Every row of "layer_norm_bf16" and "softmax_bf16" against plain loops in double.
#include "lissome/kernel/norm/normalize_bf16.h"

#include <doctest/doctest.h>

#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

std::vector<float> find_layer_norm(const LayerNormBf16Call& call) {
  std::vector<float> y;
  for (int64_t m = 0; m < call.rows; ++m) {
    std::vector<double> row;
    double mean = 0, variance = 0;
    for (int64_t k = 0; k < call.width; ++k) row.push_back(widen_bf16(call.x[m * call.width + k]));
    for (const double v : row) mean += call.root_mean_square ? 0 : v / static_cast<double>(call.width);
    for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(call.width);
    for (int64_t k = 0; k < call.width; ++k) {
      const double weight = call.weight ? widen_bf16(call.weight[k]) : 1,
                   bias = call.bias ? widen_bf16(call.bias[k]) : 0;
      const double v = (row[static_cast<size_t>(k)] - mean) / std::sqrt(variance + call.epsilon);
      y.push_back(static_cast<float>(v * weight + bias));
    }
  }
  return y;
}

std::vector<float> find_softmax(const SoftmaxBf16Call& call) {
  std::vector<float> y;
  for (int64_t m = 0; m < call.rows; ++m) {
    const uint16_t* x = call.x + m * call.width;
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < call.width; ++k) largest = std::fmax(largest, widen_bf16(x[k]));
    for (int64_t k = 0; k < call.width; ++k) sum += std::exp(widen_bf16(x[k]) - largest);
    for (int64_t k = 0; k < call.width; ++k) {
      y.push_back(static_cast<float>(std::exp(widen_bf16(x[k]) - largest) / sum));
    }
  }
  return y;
}

template <typename Call>
void check_rows(std::string_view name, Call call, const std::vector<float>& expected) {
  for (const KernelRow& row : kernel_rows(name)) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 2, 5}) {
      CAPTURE(name);
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      CAPTURE(call.width);
      std::vector<uint16_t> y(expected.size(), 0x4444);
      call.y = y.data();
      for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
      int64_t wrong = 0;
      for (size_t i = 0; i < y.size(); ++i) wrong += !is_rounded(y[i], expected[i], 4e-6f);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE("layer_norm_bf16 and softmax_bf16 agree with plain loops") {
  uint64_t seed = 1;
  for (const int64_t width : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 97, 384, 1031}) {
    for (const int64_t rows : {1, 2, 5}) {
      TestNumbers numbers(seed++);
      auto x = make_bf16(numbers, rows * width);
      const auto weight = make_bf16(numbers, width), bias = make_bf16(numbers, width);
      LayerNormBf16Call norm;
      norm.x = x.data(), norm.rows = rows, norm.width = width, norm.epsilon = 1e-5f;
      if (seed % 3 != 0) norm.weight = weight.data();
      if (seed % 2 != 0) norm.bias = bias.data();
      norm.root_mean_square = seed % 5 == 0;
      SoftmaxBf16Call softmax;
      softmax.x = x.data(), softmax.rows = rows, softmax.width = width;
      check_rows("layer_norm_bf16", norm, find_layer_norm(norm));
      check_rows("softmax_bf16", softmax, find_softmax(softmax));
      x[0] = 0xff80;  // -infinity
      check_rows("softmax_bf16", softmax, find_softmax(softmax));
      x.back() = 0x7fc0;  // NaN
      check_rows("layer_norm_bf16", norm, find_layer_norm(norm));
    }
  }
}
