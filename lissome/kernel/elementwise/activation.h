// Activations that kernels apply on the way out, and their names in program text, plans and reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lissome {

enum class Activation : uint8_t {
  none,
  relu,
  gelu,       // x/2 * (1 + erf(x / sqrt 2))
  gelu_tanh,  // the tanh form
  silu,       // x * sigmoid(x)
  sigmoid,
  tanh,
  hardswish,    // x * clamp(x + 3, 0, 6) / 6
  hardsigmoid,  // clamp(x + 3, 0, 6) / 6
  leaky_relu,   // x > 0 ? x : alpha * x
  elu,          // x > 0 ? x : alpha * (exp(x) - 1)
  clamp,        // min(max(x, alpha), beta)
};

// What a kernel does with its sums before they are stored. NaN passes through every activation.
struct Epilogue {
  Activation activation = Activation::none;
  float alpha = 0;
  float beta = 0;
};

std::string_view activation_name(Activation activation);
std::optional<Activation> parse_activation(std::string_view name);

// The meaning, in double precision: the oracle of the vector forms.
double activate(Epilogue epilogue, double x);
// Its derivative at x; at a corner that of the left side, as PyTorch's formulas have it for relu and clamp.
double find_slope(Epilogue epilogue, double x);

}  // namespace lissome
