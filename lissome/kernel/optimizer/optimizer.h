// The updates of training: one pass over a weight, its gradient and its states. Each call scales the gradient (by one
// number: what a loss was scaled by and what clipping leaves), decays, updates, and hands out the new weight in bf16
// where asked. Factors are doubles, because 1 - 0.999 in f32 is off by 5e-5. train/optim/optimizer.h makes these calls.
#pragma once

#include <cstdint>

namespace lissome {

// What every update reads and writes. Arrays never overlap.
struct UpdatedWeight {
  float* weight = nullptr;          // [count]
  const float* gradient = nullptr;  // [count]
  uint16_t* bf16_copy = nullptr;    // [count], gets the new weight; or null
  int64_t count = 0;
  double gradient_scale = 1;
};

// g = gradient * gradient_scale + gradient_decay * w;  w *= weight_factor;
// mean += (g - mean) * (1 - beta1);  square = beta2 * square + (1 - beta2) * g^2;
// w -= step_size * mean / (sqrt(square) * square_factor + epsilon).
// Adam has gradient_decay alone, AdamW weight_factor alone; the corrections of the first steps are in step_size and
// square_factor.
struct AdamCall {
  UpdatedWeight on;
  float* mean = nullptr;    // [count]
  float* square = nullptr;  // [count]
  double gradient_decay = 0, weight_factor = 1, beta1 = 0, beta2 = 0, step_size = 0, square_factor = 1, epsilon = 0;
};

// g = gradient * gradient_scale + gradient_decay * w;  momentum = keep * momentum + take * g;
// w -= learning_rate * (gradient_share * g + momentum_share * momentum).
struct SgdCall {
  UpdatedWeight on;
  float* momentum = nullptr;  // [count]; or null: w -= learning_rate * g
  double gradient_decay = 0, keep = 0, take = 1, gradient_share = 0, momentum_share = 1, learning_rate = 0;
};

// g = gradient * gradient_scale;  w *= weight_factor;  w -= learning_rate * sign(mean + (g - mean) * (1 - beta1));
// mean += (g - mean) * (1 - beta2). (Chen et al. 2023, arXiv 2302.06675)
struct LionCall {
  UpdatedWeight on;
  float* mean = nullptr;  // [count]
  double weight_factor = 1, beta1 = 0, beta2 = 0, learning_rate = 0;
};

// sums[i] = the sum of squares of block i of x, in f64: no square of an f32 overflows or vanishes there, so a sum is
// finite exactly where its block is. Blocks, not parts, so that their total does not depend on the threads.
inline constexpr int64_t kSquareBlock = 16384;
struct SumSquaresCall {
  const float* x = nullptr;  // [count]
  double* sums = nullptr;    // [ceil(count / kSquareBlock)]
  int64_t count = 0;
};

}  // namespace lissome
