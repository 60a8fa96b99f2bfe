// Operands of the int8 kernels' tests, and every row against the portable one: the same bits, as long as no activation
// rounds.
#pragma once

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "lissome/kernel/gemm/linear_u8s8.h"
#include "lissome/kernel/isa/convert_element.h"
#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/test_arrays.h"

namespace lissome {

struct Bytes {
  std::vector<uint8_t> x;
  std::vector<int8_t> weight;
};

inline Bytes make_bytes(TestNumbers& numbers, int64_t x_count, int64_t weight_count) {
  Bytes bytes;
  for (int64_t i = 0; i < x_count; ++i) bytes.x.push_back(static_cast<uint8_t>(numbers.between(0, 255)));
  for (int64_t i = 0; i < weight_count; ++i) bytes.weight.push_back(static_cast<int8_t>(numbers.between(-127, 127)));
  return bytes;
}

// What surrounds the sums; kept alive for the call that points into it.
struct Surroundings {
  std::vector<float> multiplier, bias, residual, row_scales;
  std::vector<uint8_t> residual_u8;
  std::vector<uint16_t> residual_bf16;
  std::vector<int32_t> row_zeros;

  Surroundings(TestNumbers& numbers, int64_t rows, int64_t outputs) {
    bias = numbers.reals(outputs);
    residual = numbers.reals(rows * outputs);
    for (int64_t i = 0; i < rows * outputs; ++i) {
      residual_u8.push_back(static_cast<uint8_t>(numbers.between(0, 255)));
      residual_bf16.push_back(narrow_bf16(residual[static_cast<size_t>(i)]));
    }
    for (int64_t n = 0; n < outputs; ++n) multiplier.push_back(1e-4f + 1e-4f * std::fabs(numbers.real()));
    for (int64_t m = 0; m < rows; ++m) {
      row_scales.push_back(0.5f + std::fabs(numbers.real()));
      row_zeros.push_back(static_cast<int32_t>(numbers.between(0, 255)));
    }
  }
  void fill(TestNumbers& numbers, OutputU8S8& output, int64_t outputs, bool scales_rows) const {
    output.multiplier = multiplier.data();
    if (numbers.between(0, 1)) output.bias = bias.data();
    const int64_t kind = numbers.between(0, 3);
    if (kind == 1) output.residual = residual.data();
    if (kind == 2) output.residual_u8 = residual_u8.data();
    if (kind == 3) output.residual_bf16 = residual_bf16.data();
    output.residual_scale = 0.01f, output.residual_zero = static_cast<int32_t>(numbers.between(0, 255));
    if (scales_rows && numbers.between(0, 1)) {
      output.row_scales = row_scales.data(), output.row_zeros = row_zeros.data();
    }
    output.x_zero = static_cast<int32_t>(numbers.between(0, 255));
    output.y_stride = output.residual_stride = outputs;
    if (numbers.between(0, 1)) {
      output.out_inverse = 60.0f;
      output.out_zero = static_cast<int32_t>(numbers.between(0, 255));
    } else {
      output.narrows = numbers.between(0, 1) != 0;
    }
    output.epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f};
  }
};

// y as floats, whatever it is.
template <typename Call>
std::vector<float> run_row(const KernelRow& row, Call call, int64_t count, int parts) {
  std::vector<float> floats(static_cast<size_t>(count), 777.0f);
  std::vector<uint8_t> bytes(static_cast<size_t>(count), 77);
  const bool quantized = call.out_inverse != 0;
  std::vector<uint16_t> halves(static_cast<size_t>(count), 77);
  call.y = quantized      ? static_cast<void*>(bytes.data())
           : call.narrows ? static_cast<void*>(halves.data())
                          : floats.data();
  for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
  for (int64_t i = 0; call.narrows && i < count; ++i) {
    floats[static_cast<size_t>(i)] = widen_bf16(halves[static_cast<size_t>(i)]);
  }
  return quantized ? std::vector<float>(bytes.begin(), bytes.end()) : floats;
}

// The same bits; where an activation rounds, near, and few bytes differ.
inline void check_results(const std::vector<float>& seen, const std::vector<float>& wanted, const OutputU8S8& output) {
  const Activation activation = output.epilogue.activation;
  const bool rounds =
      activation != Activation::none && activation != Activation::relu && activation != Activation::clamp;
  if (!rounds) {
    CHECK(seen == wanted);
  } else if (output.out_inverse == 0) {
    CHECK(count_differences(seen, wanted, output.narrows ? 8e-3f : 2e-6f) == 0);
  } else {
    int64_t far = 0, unequal = 0;
    for (size_t i = 0; i < seen.size(); ++i) {
      far += std::fabs(seen[i] - wanted[i]) > 1;
      unequal += seen[i] != wanted[i];
    }
    CHECK(far == 0);
    CHECK(unequal <= std::ssize(seen) / 200);
  }
}

template <typename Call>
void check_rows(std::string_view name, const Call& call, int64_t count, uint64_t seed) {
  const auto rows = kernel_rows(name);
  const auto wanted = run_row(rows.back(), call, count, 1);
  for (const KernelRow& row : rows) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 3}) {
      CAPTURE(isa_name(row.isa));
      CAPTURE(seed);
      check_results(run_row(row, call, count, parts), wanted, call);
    }
  }
}

}  // namespace lissome
