// Derivatives of activations over Floats; the meaning is find_slope() in activation.h. NaN stays NaN.
#pragma once

#include "lissome/kernel/elementwise/activation_body.h"

namespace lissome {
namespace {

// x > bound ? above : other.
inline Floats select_above(Floats x, float bound, Floats above, Floats other) {
  return select_negative(fill(bound) - x, above, other);
}

inline Floats slope_of_gelu_tanh(Floats x) {
  // tanh(t) = 2 sigmoid(2 t) - 1, so that 1 - tanh^2 = 4 s (1 - s).
  const Floats square = x * x;
  const Floats cube = multiply_add(square * fill(0.044715f), x, x);
  const Floats s = logistic(cube * fill(1.59576912f));
  const Floats inner = multiply_add(square, fill(3 * 0.044715f), fill(1.0f)) * fill(1.59576912f);
  return multiply_add(x * inner, s * (fill(1.0f) - s), s);
}

inline Floats slope_of(Epilogue epilogue, Floats x) {
  const Floats one = fill(1.0f), zero = zeros();
  switch (epilogue.activation) {
    case Activation::none: return one;
    case Activation::relu: return keep_nan(x, select_above(x, 0, one, zero));
    case Activation::gelu: {
      const Floats density = exponential(x * x * fill(-0.5f)) * fill(0.398942280f);
      return multiply_add(x, density, multiply_add(error_function(x * fill(0.707106781f)), fill(0.5f), fill(0.5f)));
    }
    case Activation::gelu_tanh: return slope_of_gelu_tanh(x);
    case Activation::silu: {
      const Floats s = logistic(x);
      return s * multiply_add(x, one - s, one);
    }
    case Activation::sigmoid: {
      const Floats s = logistic(x);
      return s * (one - s);
    }
    case Activation::tanh: {
      const Floats t = hyperbolic_tangent(x);
      return subtract_product(t, t, one);
    }
    case Activation::hardswish: {
      const Floats line = multiply_add(x, fill(1.0f / 3), fill(0.5f));
      return keep_nan(x, select_negative(x + fill(3.0f), zero, select_above(x, 3, one, line)));
    }
    case Activation::hardsigmoid: {
      const Floats inside = select_negative(x - fill(3.0f), fill(1.0f / 6), zero);
      return keep_nan(x, select_above(x, -3, inside, zero));
    }
    case Activation::leaky_relu: return keep_nan(x, select_above(x, 0, one, fill(epilogue.alpha)));
    case Activation::elu: return keep_nan(x, select_above(x, 0, one, exponential(x) * fill(epilogue.alpha)));
    case Activation::clamp: {
      const Floats inside = select_negative(x - fill(epilogue.beta), one, zero);
      return keep_nan(x, select_above(x, epilogue.alpha, inside, zero));
    }
  }
  return one;
}

}  // namespace
}  // namespace lissome
