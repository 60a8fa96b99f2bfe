#include "lissome/kernel/norm/group_norm.h"

#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/bf16_arrays.h"

using namespace lissome;

TEST_CASE("group_norm agrees with the portable form") {
  TestNumbers numbers(31);
  for (int i = 0; i < 60; ++i) {
    GroupNormCall call;
    call.batch = numbers.between(1, 3), call.positions = numbers.between(1, 600);
    call.groups = numbers.between(1, 5), call.channels = call.groups * numbers.between(1, 40);
    call.epsilon = 1e-5f;
    auto x = numbers.reals(call.batch * call.positions * call.channels);
    for (float& value : x) value = value * 3 + 5;  // a mean that is not small beside the deviation
    const auto weight = numbers.reals(call.channels), bias = numbers.reals(call.channels);
    call.x = x.data();
    if (i % 2 == 0) call.weight = weight.data();
    if (i % 4 < 2) call.bias = bias.data();
    if (i % 3 == 0) call.epilogue = {i % 2 == 0 ? Activation::silu : Activation::clamp, -0.5f, 0.75f};
    check_rows("group_norm", call, static_cast<int64_t>(x.size()), 2e-5f,
               [](GroupNormCall& filled, float* y) { filled.y = y; });
  }
}

TEST_CASE("group_norm_bf16 rounds what group_norm gives for the same numbers") {
  TestNumbers numbers(33);
  const auto widen = [](const std::vector<uint16_t>& narrow) {
    std::vector<float> wide;
    for (const uint16_t value : narrow) wide.push_back(widen_bf16(value));
    return wide;
  };
  for (int i = 0; i < 30; ++i) {
    GroupNormBf16Call call;
    call.batch = numbers.between(1, 3), call.positions = numbers.between(1, 300);
    call.groups = numbers.between(1, 5), call.channels = call.groups * numbers.between(1, 40);
    call.epsilon = 1e-5f;
    if (i % 3 == 0) call.epilogue.activation = Activation::silu;
    const auto x = make_bf16(numbers, call.batch * call.positions * call.channels);
    const auto weight = make_bf16(numbers, call.channels), bias = make_bf16(numbers, call.channels);
    const auto wide_x = widen(x), wide_weight = widen(weight), wide_bias = widen(bias);
    std::vector<float> exact(x.size());
    GroupNormCall judge{wide_x.data(),  wide_weight.data(), wide_bias.data(), exact.data(), call.batch,
                        call.positions, call.channels,      call.groups,      call.epsilon, call.epilogue};
    kernel_rows("group_norm").back().function(&judge, 0, 1);
    call.x = x.data(), call.weight = weight.data(), call.bias = bias.data();
    for (const KernelRow& row : kernel_rows("group_norm_bf16")) {
      if (!can_run(row.isa)) continue;
      std::vector<uint16_t> y(x.size());
      call.y = y.data();
      for (int part = 0; part < 2; ++part) row.function(&call, part, 2);
      for (size_t k = 0; k < y.size(); ++k) CHECK(is_rounded(y[k], exact[k], 2e-5f));
    }
  }
}

TEST_CASE("group_norm hands on what is no number") {
  TestNumbers numbers(32);
  GroupNormCall call;
  call.batch = 1, call.positions = 9, call.channels = 6, call.groups = 2;
  auto x = numbers.reals(54);
  x[1] = std::numeric_limits<float>::quiet_NaN();
  call.x = x.data();
  std::vector<float> y(54);
  call.y = y.data();
  for (const KernelRow& row : kernel_rows("group_norm")) {
    if (!can_run(row.isa)) continue;
    row.function(&call, 0, 1);
    for (size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i % 6 < 3));  // the first group alone
  }
}
