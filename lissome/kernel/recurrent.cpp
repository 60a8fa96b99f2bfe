// The portable forms: every sum in double.
#include "lissome/kernel/recurrent.h"

#include <cmath>

#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/split.h"

namespace lissome {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// One row of one direction, through all steps.
class RecurrentRow {
 public:
  RecurrentRow(const RecurrentCall& call, int64_t gates, int64_t direction, int64_t row)
      : call_(call), gates_(gates), direction_(direction), row_(row), at_((direction * call.batch + row) * call.size) {}

  void run() {
    for (int64_t k = 0; k < call_.size; ++k) {
      call_.hn[at_ + k] = call_.h0[at_ + k];
      if (gates_ == 4) call_.cn[at_ + k] = call_.c0[at_ + k];
    }
    for (int64_t step = 0; step < call_.steps; ++step) {
      const int64_t t = direction_ == 0 ? step : call_.steps - 1 - step;
      float* h = call_.y + t * call_.y_step + row_ * call_.y_row + direction_ * call_.size;
      for (int64_t k = 0; k < call_.size; ++k) h[k] = static_cast<float>(gates_ == 4 ? run_lstm(t, k) : run_gru(t, k));
      for (int64_t k = 0; k < call_.size; ++k) call_.hn[at_ + k] = h[k];
    }
  }

 private:
  double input(int64_t t, int64_t output) const {
    return call_.gates[t * call_.gates_step + row_ * call_.gates_row + direction_ * gates_ * call_.size + output];
  }
  double product(int64_t output) const {
    const int64_t panels = (gates_ * call_.size + kLinearPanel - 1) / kLinearPanel;
    const float* weight = call_.weight + direction_ * panels * kLinearPanel * call_.size +
                          output / kLinearPanel * kLinearPanel * call_.size + output % kLinearPanel;
    double sum = call_.bias ? call_.bias[direction_ * gates_ * call_.size + output] : 0;
    for (int64_t k = 0; k < call_.size; ++k) sum += static_cast<double>(call_.hn[at_ + k]) * weight[k * kLinearPanel];
    return sum;
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

  const RecurrentCall& call_;
  int64_t gates_, direction_, row_, at_;
};

void run_portable(const RecurrentCall& call, int64_t gates, int part, int parts) {
  const Range range = split_evenly(call.directions * call.batch, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) RecurrentRow(call, gates, i / call.batch, i % call.batch).run();
}

}  // namespace

void lstm_portable(const RecurrentCall& call, int part, int parts) { run_portable(call, 4, part, parts); }
void gru_portable(const RecurrentCall& call, int part, int parts) { run_portable(call, 3, part, parts); }

}  // namespace lissome
