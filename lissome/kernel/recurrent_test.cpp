#include "lissome/kernel/recurrent.h"

#include "lissome/kernel/linear_f32.h"
#include "lissome/kernel/row_check.h"

using namespace lissome;

namespace {

// Weights, states and results of one call, all of them in one place.
struct RecurrentCase {
  RecurrentCase(TestNumbers& numbers, int64_t gates, int64_t size, bool batch_first) {
    call.steps = numbers.between(1, 6), call.batch = numbers.between(1, 8), call.size = size;
    call.directions = numbers.between(1, 2);
    const int64_t wide = call.directions * gates * size, narrow = call.directions * size;
    call.gates_step = batch_first ? wide : call.batch * wide, call.gates_row = batch_first ? call.steps * wide : wide;
    call.y_step = batch_first ? narrow : call.batch * narrow, call.y_row = batch_first ? call.steps * narrow : narrow;
    input = numbers.reals(call.steps * call.batch * wide);
    bias = numbers.reals(wide), states = numbers.reals(2 * narrow * call.batch);
    const int64_t packed = packed_linear_f32_size(gates * size, size);
    for (int64_t d = 0; d < call.directions; ++d) {
      auto rows = numbers.reals(gates * size * size);
      for (float& value : rows) value *= 2 / std::sqrt(static_cast<float>(size));
      weight.resize(static_cast<size_t>((d + 1) * packed));
      pack_linear_f32(rows.data(), gates * size, size, size, 1, weight.data() + d * packed);
    }
    scratch.resize(static_cast<size_t>(call.batch * wide));
    call.gates = input.data(), call.weight = weight.data();
    call.bias = gates == 3 && numbers.between(0, 2) > 0 ? bias.data() : nullptr;
    call.h0 = states.data(), call.c0 = states.data() + narrow * call.batch;
    call.scratch = scratch.data();
  }

  RecurrentCall call;
  std::vector<float> input, weight, bias, states, scratch;
};

void check_recurrent(std::string_view name, int64_t gates) {
  TestNumbers numbers(11);
  for (const int64_t size : {1, 3, 16, 31, 64, 100}) {
    for (int trial = 0; trial < 6; ++trial) {
      RecurrentCase made(numbers, gates, size, trial % 2 == 0);
      if (trial == 4) made.input[made.input.size() / 2] = std::nanf("");
      if (trial == 5) made.input[0] = INFINITY;
      const int64_t narrow = made.call.directions * size * made.call.batch;
      // y, then hn, then cn.
      check_rows(name, made.call, narrow * (made.call.steps + 2), 2e-5f, [&](RecurrentCall& call, float* y) {
        call.y = y, call.hn = y + narrow * call.steps, call.cn = call.hn + narrow;
      });
    }
  }
}

}  // namespace

TEST_CASE("lstm agrees with the portable form") { check_recurrent("lstm", 4); }
TEST_CASE("gru agrees with the portable form") { check_recurrent("gru", 3); }

TEST_CASE("lstm of one step and size one is its formula") {
  const float gates[4] = {0.5f, -0.25f, 1, 2}, h0 = 0.75f, c0 = -0.5f;
  const float rows[4] = {1, 2, -1, 0.5f};
  std::vector<float> weight(static_cast<size_t>(packed_linear_f32_size(4, 1)));
  pack_linear_f32(rows, 4, 1, 1, 1, weight.data());
  float y = 0, hn = 0, cn = 0, scratch[4];
  RecurrentCall call;
  call.steps = call.batch = call.size = 1;
  call.gates = gates, call.weight = weight.data(), call.h0 = &h0, call.c0 = &c0;
  call.y = &y, call.hn = &hn, call.cn = &cn, call.scratch = scratch;
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double cell = logistic(1.25) * -0.5 + logistic(1.25) * std::tanh(0.25);
  for (const KernelRow& row : kernel_rows("lstm")) {
    if (!can_run(row.isa)) continue;
    row.function(&call, 0, 1);
    CHECK(close_enough(cn, static_cast<float>(cell), 1e-6f));
    CHECK(close_enough(y, static_cast<float>(logistic(2.375) * std::tanh(cell)), 1e-6f));
    CHECK(hn == y);
  }
}
