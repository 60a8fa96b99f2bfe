// Every version of the products in groups, and of what makes groups of rows, against the portable ones.
#include "lissome/kernel/gemm/linear_group.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {
namespace {

struct Groups {
  std::vector<int8_t> y;
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

Groups quantize(const KernelRow& row, const std::vector<float>& x, int64_t rows, int64_t inputs, int parts) {
  const auto groups = static_cast<size_t>(rows * inputs / kWeightGroup);
  Groups made{std::vector<int8_t>(x.size(), 99), std::vector<float>(groups, 99), std::vector<int32_t>(groups, 99)};
  QuantizeGroupsCall call{x.data(), made.y.data(), made.scales.data(), made.sums.data(), rows, inputs};
  for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
  return made;
}

TEST_CASE("quantize_groups gives the bits of the portable form, on special values too") {
  TestNumbers numbers(1);
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t groups : {1, 3, 8}) {
    const int64_t rows = 5, inputs = groups * kWeightGroup;
    std::vector<float> x = numbers.reals(rows * inputs);
    for (const float special : {infinity, -infinity, nan, 1e-38f, 3e38f, -127.5f}) {
      x[static_cast<size_t>(numbers.between(0, rows * inputs - 1))] = special;
    }
    std::fill_n(x.begin(), kWeightGroup, 0.0f);
    const auto levels = kernel_rows("quantize_groups");
    const Groups wanted = quantize(levels.back(), x, rows, inputs, 1);
    CHECK(wanted.scales[0] == 1);
    for (const KernelRow& row : levels) {
      if (!can_run(row.isa)) continue;
      CAPTURE(isa_name(row.isa));
      const Groups seen = quantize(row, x, rows, inputs, 3);
      CHECK(seen.y == wanted.y);
      CHECK(seen.sums == wanted.sums);
      CHECK(count_differences(seen.scales, wanted.scales, 0) == 0);
    }
  }
}

struct GroupOperands {
  std::vector<int8_t> x;
  std::vector<float> x_scales, bias, residual;
  std::vector<int32_t> x_sums;
  std::vector<uint8_t> weight;
  std::vector<uint16_t> scales;

  GroupOperands(TestNumbers& numbers, int64_t rows, int64_t inputs, int64_t outputs, int bits, int64_t scale_inputs)
      : bias(numbers.reals(outputs)), residual(numbers.reals(rows * outputs)) {
    for (int64_t i = 0; i < rows * inputs; ++i) x.push_back(static_cast<int8_t>(numbers.between(-127, 127)));
    for (int64_t g = 0; g < rows * inputs / kWeightGroup; ++g) {
      x_scales.push_back(std::fabs(numbers.real()));
      int32_t sum = 0;
      for (int64_t i = 0; i < kWeightGroup; ++i) sum += x[static_cast<size_t>(g * kWeightGroup + i)];
      x_sums.push_back(sum);
    }
    const int64_t most = bits == 4 ? 7 : 127;
    std::vector<int8_t> given;
    std::vector<uint16_t> given_scales;
    for (int64_t i = 0; i < outputs * inputs; ++i) {
      given.push_back(static_cast<int8_t>(numbers.between(-most - 1, most)));
    }
    for (int64_t i = 0; i < outputs * inputs / scale_inputs; ++i) given_scales.push_back(narrow_bf16(numbers.real()));
    weight.resize(static_cast<size_t>(packed_group_size(outputs, inputs, bits)));
    scales.resize(static_cast<size_t>(packed_group_scales(outputs, inputs, scale_inputs)));
    pack_group_weight(given.data(), outputs, inputs, bits, weight.data());
    pack_group_scales(given_scales.data(), outputs, inputs, scale_inputs, scales.data());
  }
};

void check_group(int64_t rows, int64_t groups, int64_t outputs, int bits, uint64_t seed) {
  CAPTURE(rows);
  CAPTURE(groups);
  CAPTURE(outputs);
  CAPTURE(bits);
  TestNumbers numbers(seed);
  const int64_t inputs = groups * kWeightGroup;
  LinearGroupCall call;
  for (const int64_t together : {2, 4}) {
    if (groups % together == 0 && seed % 5 < 3) call.scale_inputs = together * kWeightGroup;
  }
  const GroupOperands operands(numbers, rows, inputs, outputs, bits, call.scale_inputs);
  call.x = operands.x.data(), call.x_scales = operands.x_scales.data(), call.x_sums = operands.x_sums.data();
  call.weight = operands.weight.data(), call.weight_scales = operands.scales.data();
  call.rows = rows, call.inputs = inputs, call.outputs = outputs, call.bits = bits;
  if (seed % 2 == 0) call.bias = operands.bias.data();
  if (seed % 3 == 0) call.residual = operands.residual.data();
  // Without an activation all versions give the same bits: sums are exact, and terms are added in one order.
  const bool activates = seed % 4 == 1;
  if (activates) call.epilogue = {Activation::gelu};
  check_rows("linear_group", call, rows * outputs, activates ? 1e-5f : 0,
             [](LinearGroupCall& to, float* y) { to.y = y; });
}

TEST_CASE("linear_group gives the bits of the portable form over odd shapes") {
  uint64_t seed = 1;
  for (const int bits : {4, 8}) {
    for (const int64_t rows : {1, 2, 4, 9}) {
      for (const int64_t groups : {1, 2, 4, 7}) {
        for (const int64_t outputs : {1, 7, 16, 33, 130}) check_group(rows, groups, outputs, bits, seed++);
      }
    }
    check_group(3, 130, 50, bits, seed++);
  }
}

TEST_CASE("linear_group does not overflow on extreme numbers") {
  for (const int bits : {4, 8}) {
    const int64_t outputs = 16, least = bits == 4 ? -8 : -128;
    const std::vector<int8_t> x(kWeightGroup, -127), weight(kWeightGroup * outputs, static_cast<int8_t>(least));
    const std::vector<float> one = {1};
    const std::vector<int32_t> sums = {-127 * 32};
    std::vector<uint8_t> packed(static_cast<size_t>(packed_group_size(outputs, kWeightGroup, bits)));
    const std::vector<uint16_t> scales(static_cast<size_t>(outputs), 0x3f80);  // 1
    pack_group_weight(weight.data(), outputs, kWeightGroup, bits, packed.data());
    std::vector<float> y(static_cast<size_t>(outputs));
    LinearGroupCall call;
    call.x = x.data(), call.x_scales = one.data(), call.x_sums = sums.data(), call.y = y.data();
    call.weight = packed.data(), call.weight_scales = scales.data();
    call.rows = 1, call.inputs = kWeightGroup, call.outputs = outputs, call.bits = bits;
    for (const KernelRow& row : kernel_rows("linear_group")) {
      if (!can_run(row.isa)) continue;
      row.function(&call, 0, 1);
      CHECK(y == std::vector<float>(static_cast<size_t>(outputs), static_cast<float>(127 * 32 * -least)));
    }
  }
}

}  // namespace
}  // namespace lissome
