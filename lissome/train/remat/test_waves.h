// Samples and classes for tests. The samples are waves: neighbours differ, and every run sees the same ones.
#pragma once

#include <cmath>

#include "lissome/data.h"

namespace lissome {

// x: f32[samples, width], labels in 0..4.
inline Dataset make_waves(int64_t samples, int64_t width) {
  NamedArray x{"x", make_array(Dtype::f32, {samples, width})}, labels{"labels", make_array(Dtype::i64, {samples})};
  for (int64_t i = 0; i < samples * width; ++i)
    x.array.data<float>()[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i)));
  for (int64_t i = 0; i < samples; ++i) labels.array.data<int64_t>()[i] = i % 5;
  return make_dataset({x, labels}, {.labels = "labels"}, "waves");
}

}  // namespace lissome
