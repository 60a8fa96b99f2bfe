#include "lissome/kernel/elementwise/activation.h"

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

double find_slope(Epilogue epilogue, double x) {
  const double alpha = epilogue.alpha;
  const auto sigmoid = [](double t) { return 1 / (1 + std::exp(-t)); };
  if (std::isnan(x) && epilogue.activation != Activation::none) return x;
  switch (epilogue.activation) {
    case Activation::none: return 1;
    case Activation::relu: return x > 0 ? 1 : 0;
    case Activation::gelu: return 0.5 * (1 + std::erf(x * M_SQRT1_2)) + x * std::exp(-0.5 * x * x) * 0.3989422804014327;
    case Activation::gelu_tanh: {
      const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
    }
    case Activation::silu: return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    case Activation::sigmoid: return sigmoid(x) * (1 - sigmoid(x));
    case Activation::tanh: return 1 - std::tanh(x) * std::tanh(x);
    case Activation::hardswish: return x < -3 ? 0 : x <= 3 ? x / 3 + 0.5 : 1;
    case Activation::hardsigmoid: return x > -3 && x < 3 ? 1.0 / 6 : 0;
    case Activation::leaky_relu: return x > 0 ? 1 : alpha;
    case Activation::elu: return x > 0 ? 1 : alpha * std::exp(x);
    case Activation::clamp: return x > alpha && x < epilogue.beta ? 1 : 0;
  }
  return 1;
}

}  // namespace lissome
