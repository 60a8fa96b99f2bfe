// Cross entropy over class numbers, from logarithms of probabilities as softmax makes them.
#pragma once

#include <cstdint>

namespace lissome {

// loss = minus the sum (or the mean) of logarithms[row][label] over the rows whose label is not `ignored`; `counted` is
// their number. A label out of range sets *fault. Rows are added up in double, by one part.
struct NllLossCall {
  const float* logarithms = nullptr;  // [rows, classes]
  const int64_t* labels = nullptr;    // [rows]
  float* loss = nullptr;              // one number
  float* counted = nullptr;           // one number
  int64_t* fault = nullptr;
  int64_t fault_code = 0;
  int64_t rows = 0, classes = 0, ignored = -100;
  bool mean = true;
};

// Its gradient with respect to what softmax read: (exp(logarithm) - one at the label) * d loss, divided by `counted`
// where the loss is a mean; zeros in ignored rows.
struct CrossEntropyGradientCall {
  const float* logarithms = nullptr;
  const int64_t* labels = nullptr;
  const float* dloss = nullptr;    // one number
  const float* counted = nullptr;  // one number
  float* dx = nullptr;             // [rows, classes]; may be the logarithms themselves
  int64_t rows = 0, classes = 0, ignored = -100;
  bool mean = true;
};

}  // namespace lissome
