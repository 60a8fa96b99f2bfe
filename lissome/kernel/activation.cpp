#include "lissome/kernel/activation.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lissome {
namespace {

constexpr std::array<std::string_view, 12> kNames = {"none",        "relu",       "gelu", "gelu_tanh",
                                                     "silu",        "sigmoid",    "tanh", "hardswish",
                                                     "hardsigmoid", "leaky_relu", "elu",  "clamp"};

double clamp_keeping_nan(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

}  // namespace

std::string_view activation_name(Activation activation) { return kNames.at(static_cast<size_t>(activation)); }

std::optional<Activation> parse_activation(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Activation>(found - kNames.begin());
}

double activate(Epilogue epilogue, double x) {
  const double alpha = epilogue.alpha;
  switch (epilogue.activation) {
    case Activation::none: return x;
    case Activation::relu: return x < 0 ? 0 : x;
    case Activation::gelu: return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
    case Activation::gelu_tanh: return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
    case Activation::hardswish: return x * clamp_keeping_nan(x + 3, 0, 6) / 6;
    case Activation::hardsigmoid: return clamp_keeping_nan(x + 3, 0, 6) / 6;
    case Activation::leaky_relu: return x < 0 ? alpha * x : x;
    case Activation::elu: return x < 0 ? alpha * std::expm1(x) : x;
    case Activation::clamp: return clamp_keeping_nan(x, alpha, epilogue.beta);
  }
  return x;
}

}  // namespace lissome
