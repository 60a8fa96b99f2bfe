// The portable forms: sums of f32 and bf16 in double; those of s8 are the int8 linear's.
#include "lissome/kernel/recurrent/recurrent.h"

#include <cmath>

#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/linear_bf16_sizes.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"
#include "lissome/kernel/recurrent/kernel_versions.h"

namespace lissome {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// The recurrent product of one direction and row, without bias: start() with the state of a step, then sum().
struct ProductF32 {
  ProductF32(const RecurrentCall& call, int64_t gates, int64_t direction, int64_t)
      : size(call.size), weight(call.weight + direction * packed_linear_f32_size(gates * size, size)) {}
  void start(const float* h) { state = h; }
  double sum(int64_t output) const {
    const float* column = weight + output / kLinearPanel * kLinearPanel * size + output % kLinearPanel;
    double total = 0;
    for (int64_t k = 0; k < size; ++k) total += static_cast<double>(state[k]) * column[k * kLinearPanel];
    return total;
  }

  int64_t size;
  const float *weight, *state = nullptr;
};

struct ProductBf16 {
  ProductBf16(const RecurrentBf16Call& call, int64_t gates, int64_t direction, int64_t)
      : size(call.size), weight(call.weight + direction * packed_linear_bf16_size(gates * size, size)) {}
  void start(const float* h) { state = h; }
  double sum(int64_t output) const {
    double total = 0;
    for (int64_t k = 0; k < size; ++k) {
      total += static_cast<double>(widen_bf16(narrow_bf16(state[k]))) *
               widen_bf16(weight[find_packed_bf16(output, k, count_bf16_steps(size))]);
    }
    return total;
  }

  int64_t size;
  const uint16_t* weight;
  const float* state = nullptr;
};

struct ProductU8S8 {
  ProductU8S8(const RecurrentU8S8Call& call, int64_t gates, int64_t direction, int64_t row)
      : sums(call.scratch + (direction * call.batch + row) * recurrent_scratch(gates, call.size)) {
    linear.inputs = quantize.inputs = call.size, linear.outputs = gates * call.size;
    linear.weight = call.weight + direction * packed_u8s8_size(linear.outputs, call.size, {});
    linear.multiplier = call.scales + direction * linear.outputs;
    linear.weight_sums = call.weight_sums + direction * linear.outputs;
    linear.rows = quantize.rows = 1;
    linear.y = sums;
    linear.x = quantize.y = reinterpret_cast<uint8_t*>(sums + linear.outputs);
  }
  void start(const float* h) {
    float scale = 0;
    int32_t zero = 0;
    quantize.x = h, quantize.scales = &scale, quantize.zeros = &zero;
    quantize_rows_portable(quantize, 0, 1);
    linear.row_scales = &scale, linear.row_zeros = &zero;
    linear_u8s8_portable(linear, 0, 1);
  }
  double sum(int64_t output) const { return sums[output]; }

  float* sums;
  QuantizeRowsCall quantize;
  LinearU8S8Call linear;
};

// One row of one direction, through all steps.
template <typename Product>
class RecurrentRow {
 public:
  template <typename Call>
  RecurrentRow(const Call& call, int64_t gates, int64_t direction, int64_t row)
      : call_(call),
        product_(call, gates, direction, row),
        gates_(gates),
        direction_(direction),
        row_(row),
        at_((direction * call.batch + row) * call.size) {}

  void run() {
    for (int64_t k = 0; k < call_.size; ++k) {
      call_.hn[at_ + k] = call_.h0[at_ + k];
      if (gates_ == 4) call_.cn[at_ + k] = call_.c0[at_ + k];
    }
    for (int64_t step = 0; step < call_.steps; ++step) {
      const int64_t t = direction_ == 0 ? step : call_.steps - 1 - step;
      float* h = call_.y + t * call_.y_step + row_ * call_.y_row + direction_ * call_.size;
      product_.start(call_.hn + at_);
      for (int64_t k = 0; k < call_.size; ++k) h[k] = static_cast<float>(gates_ == 4 ? run_lstm(t, k) : run_gru(t, k));
      for (int64_t k = 0; k < call_.size; ++k) call_.hn[at_ + k] = h[k];
    }
  }

 private:
  double input(int64_t t, int64_t output) const {
    return call_.gates[t * call_.gates_step + row_ * call_.gates_row + direction_ * gates_ * call_.size + output];
  }
  double product(int64_t output) const {
    return (call_.bias ? call_.bias[direction_ * gates_ * call_.size + output] : 0) + product_.sum(output);
  }
  double run_lstm(int64_t t, int64_t k) {
    const int64_t size = call_.size;
    const auto sum = [&](int64_t gate) { return input(t, gate * size + k) + product(gate * size + k); };
    const double cell = logistic(sum(1)) * call_.cn[at_ + k] + logistic(sum(0)) * std::tanh(sum(2));
    call_.cn[at_ + k] = static_cast<float>(cell);
    return logistic(sum(3)) * std::tanh(cell);
  }
  double run_gru(int64_t t, int64_t k) const {
    const int64_t size = call_.size;
    const double reset = logistic(input(t, k) + product(k));
    const double keep = logistic(input(t, size + k) + product(size + k));
    const double candidate = std::tanh(input(t, 2 * size + k) + reset * product(2 * size + k));
    return candidate + keep * (call_.hn[at_ + k] - candidate);
  }

  const RecurrentSteps& call_;
  Product product_;
  int64_t gates_, direction_, row_, at_;
};

template <typename Product, typename Call>
void run_portable(const Call& call, int64_t gates, int part, int parts) {
  const Range rows = split_evenly(call.directions * call.batch, part, parts);
  for (int64_t i = rows.begin; i < rows.end; ++i)
    RecurrentRow<Product>(call, gates, i / call.batch, i % call.batch).run();
}

}  // namespace

void lstm_portable(const RecurrentCall& call, int part, int parts) { run_portable<ProductF32>(call, 4, part, parts); }
void gru_portable(const RecurrentCall& call, int part, int parts) { run_portable<ProductF32>(call, 3, part, parts); }
void lstm_bf16_portable(const RecurrentBf16Call& call, int part, int parts) {
  run_portable<ProductBf16>(call, 4, part, parts);
}
void gru_bf16_portable(const RecurrentBf16Call& call, int part, int parts) {
  run_portable<ProductBf16>(call, 3, part, parts);
}
void lstm_u8s8_portable(const RecurrentU8S8Call& call, int part, int parts) {
  run_portable<ProductU8S8>(call, 4, part, parts);
}
void gru_u8s8_portable(const RecurrentU8S8Call& call, int part, int parts) {
  run_portable<ProductU8S8>(call, 3, part, parts);
}

}  // namespace lissome
