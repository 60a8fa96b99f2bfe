#include "lissome/kernel/recurrent/recurrent.h"

#include "lissome/kernel/gemm/linear_bf16.h"
#include "lissome/kernel/gemm/linear_f32.h"
#include "lissome/kernel/gemm/linear_u8s8.h"
#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/bf16_arrays.h"

using namespace lissome;

namespace {

// Rows [directions][outputs][size] as each form of the weights has them.
struct PackedWeights {
  std::vector<float> f32, scales;
  std::vector<uint16_t> bf16;
  std::vector<int8_t> s8;
  std::vector<int32_t> sums;

  void point(RecurrentCall& call) const { call.weight = f32.data(); }
  void point(RecurrentBf16Call& call) const { call.weight = bf16.data(); }
  void point(RecurrentU8S8Call& call) const {
    call.weight = s8.data(), call.scales = scales.data(), call.weight_sums = sums.data();
  }
};

PackedWeights make_weights(TestNumbers& numbers, int64_t directions, int64_t outputs, int64_t size) {
  PackedWeights packed;
  const int64_t count = directions * outputs;
  const float bound = 2 / std::sqrt(static_cast<float>(size));
  const auto place = [](auto& weights, int64_t part, int64_t each) {
    weights.resize(static_cast<size_t>((part + 1) * each));
    return weights.data() + part * each;
  };
  packed.sums.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) packed.scales.push_back(bound / 127 * (1 + numbers.real() / 2));
  for (int64_t d = 0; d < directions; ++d) {
    std::vector<float> rows = numbers.reals(outputs * size);
    std::vector<uint16_t> narrow;
    std::vector<int8_t> bytes;
    for (float& value : rows) {
      bytes.push_back(static_cast<int8_t>(std::nearbyint(value * 127)));
      narrow.push_back(narrow_bf16(value *= bound));
    }
    pack_linear_f32(rows.data(), outputs, size, size, 1, place(packed.f32, d, packed_linear_f32_size(outputs, size)));
    pack_linear_bf16(narrow.data(), outputs, size, size, 1,
                     place(packed.bf16, d, packed_linear_bf16_size(outputs, size)));
    pack_u8s8(bytes.data(), outputs, size, {}, place(packed.s8, d, packed_u8s8_size(outputs, size, {})),
              packed.sums.data() + d * outputs);
  }
  return packed;
}

// Weights, states and results of one call, all of them in one place.
template <typename Call>
struct RecurrentCase {
  RecurrentCase(TestNumbers& numbers, int64_t gates, int64_t size, int64_t most_steps, bool batch_first) {
    call.steps = numbers.between(1, most_steps), call.batch = numbers.between(1, 8), call.size = size;
    call.directions = numbers.between(1, 2);
    const int64_t wide = call.directions * gates * size, narrow = call.directions * size;
    call.gates_step = batch_first ? wide : call.batch * wide, call.gates_row = batch_first ? call.steps * wide : wide;
    call.y_step = batch_first ? narrow : call.batch * narrow, call.y_row = batch_first ? call.steps * narrow : narrow;
    input = numbers.reals(call.steps * call.batch * wide);
    bias = numbers.reals(wide), states = numbers.reals(2 * narrow * call.batch);
    weights = make_weights(numbers, call.directions, gates * size, size);
    scratch.resize(static_cast<size_t>(call.directions * call.batch * recurrent_scratch(gates, size)), 777.0f);
    weights.point(call);
    call.gates = input.data();
    call.bias = gates == 3 && numbers.between(0, 2) > 0 ? bias.data() : nullptr;
    call.h0 = states.data(), call.c0 = states.data() + narrow * call.batch;
    call.scratch = scratch.data();
  }

  Call call;
  PackedWeights weights;
  std::vector<float> input, bias, states, scratch;
};

template <typename Call>
void check_recurrent(std::string_view name, int64_t gates, int64_t most_steps, float tolerance) {
  TestNumbers numbers(11);
  for (const int64_t size : {1, 3, 16, 31, 64, 100}) {
    for (int trial = 0; trial < 8; ++trial) {
      RecurrentCase<Call> made(numbers, gates, size, most_steps, trial % 2 == 0);
      if (trial == 4) made.input[made.input.size() / 2] = std::nanf("");
      if (trial == 5) made.input[0] = INFINITY;
      if (trial == 6) made.states[0] = std::nanf("");
      if (trial == 7) std::fill(made.states.begin(), made.states.end(), 0.0f);
      const int64_t narrow = made.call.directions * size * made.call.batch;
      // y, then hn, then cn.
      check_rows(name, made.call, narrow * (made.call.steps + 2), tolerance, [&](Call& call, float* y) {
        call.y = y, call.hn = y + narrow * call.steps, call.cn = call.hn + narrow;
      });
    }
  }
}

// Over several steps a state that lies between two numbers of bf16 or u8 may become either: once that step times the
// largest weight.
constexpr float kExact = 2e-5f, kRoundedBf16 = 1e-2f, kRoundedU8 = 2e-2f;

}  // namespace

TEST_CASE("lstm agrees with the portable form") { check_recurrent<RecurrentCall>("lstm", 4, 6, kExact); }
TEST_CASE("gru agrees with the portable form") { check_recurrent<RecurrentCall>("gru", 3, 6, kExact); }

TEST_CASE("lstm and gru of bf16 agree with the portable form") {
  check_recurrent<RecurrentBf16Call>("lstm_bf16", 4, 1, kExact);
  check_recurrent<RecurrentBf16Call>("gru_bf16", 3, 1, kExact);
  check_recurrent<RecurrentBf16Call>("lstm_bf16", 4, 6, kRoundedBf16);
  check_recurrent<RecurrentBf16Call>("gru_bf16", 3, 6, kRoundedBf16);
}

TEST_CASE("lstm and gru of s8 agree with the portable form") {
  check_recurrent<RecurrentU8S8Call>("lstm_u8s8", 4, 1, kExact);
  check_recurrent<RecurrentU8S8Call>("gru_u8s8", 3, 1, kExact);
  check_recurrent<RecurrentU8S8Call>("lstm_u8s8", 4, 6, kRoundedU8);
  check_recurrent<RecurrentU8S8Call>("gru_u8s8", 3, 6, kRoundedU8);
}

TEST_CASE("lstm of one step and size one is its formula") {
  const float gates[4] = {0.5f, -0.25f, 1, 2}, h0 = 0.75f, c0 = -0.5f;
  const float rows[4] = {1, 2, -1, 0.5f};
  std::vector<float> weight(static_cast<size_t>(packed_linear_f32_size(4, 1)));
  pack_linear_f32(rows, 4, 1, 1, 1, weight.data());
  float y = 0, hn = 0, cn = 0, scratch[recurrent_scratch(4, 1)];
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
