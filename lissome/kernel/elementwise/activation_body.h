// Activations over Floats; include after vector_avx2.h or vector_avx512.h. The error stays below 1e-6 of the larger of
// result and argument. NaN stays NaN; infinities give what the formula gives in IEEE arithmetic (silu(-inf) is NaN).
#pragma once

#include "lissome/kernel/elementwise/activation.h"

namespace lissome {
namespace {

// e^x = (1 + tail) * 2^power: Cody-Waite reduction by ln 2, then a polynomial of degree 6 fitted to the reduced range.
struct Exponential {
  Floats tail, power;
};
inline Exponential reduce_exponential(Floats x) {
  x = max_with(fill(-104.0f), min_with(fill(89.0f), x));
  const Floats n = round_to_nearest(x * fill(1.44269504f));
  Floats r = subtract_product(n, fill(0.693145752f), x);
  r = subtract_product(n, fill(1.42860677e-6f), r);
  Floats p = fill(1.381453885e-03f);
  p = multiply_add(p, r, fill(8.368745228e-03f));
  p = multiply_add(p, r, fill(4.166839081e-02f));
  p = multiply_add(p, r, fill(1.666652040e-01f));
  p = multiply_add(p, r, fill(4.999999343e-01f));
  return {multiply_add(p, r * r, r), n};
}

inline Floats exponential(Floats x) {
  const Exponential e = reduce_exponential(x);
  return scale_by_power(e.tail + fill(1.0f), e.power);
}

// e^x - 1, exact to the last places near zero too.
inline Floats exponential_less_one(Floats x) {
  const Exponential e = reduce_exponential(x);
  return scale_by_power(e.tail, e.power) + (scale_by_power(fill(1.0f), e.power) - fill(1.0f));
}

// x * P(x^2) / Q(x^2), fitted to |x| < 3.95, beyond which erf is one.
inline Floats error_function(Floats x) {
  const Floats limit = max_with(fill(-3.95f), min_with(fill(3.95f), x));
  const Floats u = limit * limit;
  Floats p = fill(2.025825562e-06f);
  p = multiply_add(p, u, fill(2.846740073e-04f));
  p = multiply_add(p, u, fill(3.807945257e-03f));
  p = multiply_add(p, u, fill(5.287477077e-02f));
  p = multiply_add(p, u, fill(1.915465089e-01f));
  p = multiply_add(p, u, fill(1.128379144e+00f));
  Floats q = fill(3.783021896e-05f);
  q = multiply_add(q, u, fill(1.170656288e-03f));
  q = multiply_add(q, u, fill(1.505467147e-02f));
  q = multiply_add(q, u, fill(1.145578935e-01f));
  q = multiply_add(q, u, fill(5.030863516e-01f));
  q = multiply_add(q, u, fill(1.0f));
  return max_with(fill(-1.0f), min_with(fill(1.0f), limit * p / q));
}

// x * P(x^2) / Q(x^2), fitted to |x| < 9.02, beyond which tanh is one.
inline Floats hyperbolic_tangent(Floats x) {
  const Floats limit = max_with(fill(-9.02f), min_with(fill(9.02f), x));
  const Floats u = limit * limit;
  Floats p = fill(-1.220363524e-11f);
  p = multiply_add(p, u, fill(3.058533381e-08f));
  p = multiply_add(p, u, fill(2.800761761e-05f));
  p = multiply_add(p, u, fill(3.868336519e-03f));
  p = multiply_add(p, u, fill(1.367992232e-01f));
  p = multiply_add(p, u, fill(9.999999987e-01f));
  Floats q = fill(1.287376741e-06f);
  q = multiply_add(q, u, fill(3.938645925e-04f));
  q = multiply_add(q, u, fill(2.724587172e-02f));
  q = multiply_add(q, u, fill(4.701325438e-01f));
  q = multiply_add(q, u, fill(1.0f));
  return max_with(fill(-1.0f), min_with(fill(1.0f), limit * p / q));
}

inline Floats logistic(Floats x) { return fill(1.0f) / (fill(1.0f) + exponential(zeros() - x)); }

LISSOME_INLINE Floats activate_gelu(Floats x) {
  return x * fill(0.5f) * (fill(1.0f) + error_function(x * fill(0.707106781f)));
}
LISSOME_INLINE Floats activate_silu(Floats x) { return x * logistic(x); }
LISSOME_INLINE Floats activate_hardswish(Floats x) {
  return x * (max_with(zeros(), min_with(fill(6.0f), x + fill(3.0f))) * fill(1.0f / 6));
}
LISSOME_INLINE Floats clamp_vector(Epilogue epilogue, Floats x) {
  return min_with(fill(epilogue.beta), max_with(fill(epilogue.alpha), x));
}

inline Floats activate_vector(Epilogue epilogue, Floats x) {
  switch (epilogue.activation) {
    case Activation::none: return x;
    case Activation::relu: return max_with(zeros(), x);
    case Activation::gelu: return activate_gelu(x);
    case Activation::gelu_tanh: {
      const Floats cube = multiply_add(x * x * fill(0.044715f), x, x);
      return x * logistic(cube * fill(1.59576912f));
    }
    case Activation::silu: return activate_silu(x);
    case Activation::sigmoid: return logistic(x);
    case Activation::tanh: return hyperbolic_tangent(x);
    case Activation::hardswish: return activate_hardswish(x);
    case Activation::hardsigmoid: return max_with(zeros(), min_with(fill(6.0f), x + fill(3.0f))) * fill(1.0f / 6);
    case Activation::leaky_relu: return select_negative(x, x * fill(epilogue.alpha), x);
    case Activation::elu: return select_negative(x, exponential_less_one(x) * fill(epilogue.alpha), x);
    case Activation::clamp: return clamp_vector(epilogue, x);
  }
  return x;
}

// run(activation) with the activation as a function that the compiler sees through.
template <typename Function>
LISSOME_INLINE void choose_activation(Epilogue epilogue, const Function& run) {
  switch (epilogue.activation) {
    case Activation::none: return run([](Floats x) { return x; });
    case Activation::relu: return run([](Floats x) { return max_with(zeros(), x); });
    case Activation::gelu: return run([](Floats x) { return activate_gelu(x); });
    case Activation::silu: return run([](Floats x) { return activate_silu(x); });
    case Activation::hardswish: return run([](Floats x) { return activate_hardswish(x); });
    case Activation::clamp: return run([epilogue](Floats x) { return clamp_vector(epilogue, x); });
    default: return run([epilogue](Floats x) { return activate_vector(epilogue, x); });
  }
}

}  // namespace
}  // namespace lissome
