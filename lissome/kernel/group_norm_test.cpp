#include "lissome/kernel/group_norm.h"

#include "lissome/kernel/row_check.h"

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
    check_rows("group_norm", call, static_cast<int64_t>(x.size()), 2e-5f,
               [](GroupNormCall& filled, float* y) { filled.y = y; });
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
