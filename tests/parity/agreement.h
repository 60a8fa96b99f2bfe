// When two results agree: max|a-b| / max|b| at most 1e-5 over the finite elements, non-finite elements and integers
// exactly; beyond that, no more than twice as far from a float64 run as PyTorch itself lies.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>

namespace lissome {

struct Agreement {
  bool agrees = true;
  double error = 0;     // max|a-b| / max|b|
  bool by_f64 = false;  // the float64 run decided
  std::string reason;   // why not
};

constexpr double kGreatestError = 1e-5;

// `expected` none: not compared. `f64` may be none.
Agreement compare_values(const c10::IValue& seen, const c10::IValue& expected, const c10::IValue& f64);

}  // namespace lissome
