// The portable forms, in double.
#include "lissome/kernel/optimizer/optimizer.h"

#include <cmath>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"
#include "lissome/kernel/optimizer/kernel_versions.h"

namespace lissome {
namespace {

void store_weight(const UpdatedWeight& on, int64_t at, double weight) {
  on.weight[at] = static_cast<float>(weight);
  if (on.bf16_copy) on.bf16_copy[at] = narrow_bf16(on.weight[at]);
}

double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

}  // namespace

void adam_portable(const AdamCall& call, int part, int parts) {
  const Range mine = split_evenly(call.on.count, part, parts);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const double weight = static_cast<double>(call.on.weight[i]);
    const double g = static_cast<double>(call.on.gradient[i]) * call.on.gradient_scale + call.gradient_decay * weight;
    double mean = static_cast<double>(call.mean[i]), square = static_cast<double>(call.square[i]);
    mean += (g - mean) * (1 - call.beta1);
    square = call.beta2 * square + (1 - call.beta2) * g * g;
    call.mean[i] = static_cast<float>(mean);
    call.square[i] = static_cast<float>(square);
    const double divisor = std::sqrt(square) * call.square_factor + call.epsilon;
    store_weight(call.on, i, weight * call.weight_factor - call.step_size * (mean / divisor));
  }
}

void sgd_portable(const SgdCall& call, int part, int parts) {
  const Range mine = split_evenly(call.on.count, part, parts);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const double weight = static_cast<double>(call.on.weight[i]);
    double g = static_cast<double>(call.on.gradient[i]) * call.on.gradient_scale + call.gradient_decay * weight;
    if (call.momentum) {
      const double momentum = call.keep * static_cast<double>(call.momentum[i]) + call.take * g;
      call.momentum[i] = static_cast<float>(momentum);
      g = call.gradient_share * g + call.momentum_share * momentum;
    }
    store_weight(call.on, i, weight - call.learning_rate * g);
  }
}

void lion_portable(const LionCall& call, int part, int parts) {
  const Range mine = split_evenly(call.on.count, part, parts);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const double g = static_cast<double>(call.on.gradient[i]) * call.on.gradient_scale;
    const double mean = static_cast<double>(call.mean[i]);
    const double direction = sign_of(mean + (g - mean) * (1 - call.beta1));
    call.mean[i] = static_cast<float>(mean + (g - mean) * (1 - call.beta2));
    store_weight(call.on, i,
                 static_cast<double>(call.on.weight[i]) * call.weight_factor - call.learning_rate * direction);
  }
}

void sum_squares_portable(const SumSquaresCall& call, int part, int parts) {
  const Range mine = split_evenly((call.count + kSquareBlock - 1) / kSquareBlock, part, parts);
  for (int64_t block = mine.begin; block < mine.end; ++block) {
    const int64_t begin = block * kSquareBlock;
    const int64_t end = begin + kSquareBlock < call.count ? begin + kSquareBlock : call.count;
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += static_cast<double>(call.x[i]) * static_cast<double>(call.x[i]);
    call.sums[block] = sum;
  }
}

}  // namespace lissome
