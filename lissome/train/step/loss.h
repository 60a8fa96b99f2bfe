// What training makes small: a loss on top of a model, as nodes of its program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lissome/program.h"

namespace lissome {

enum class LossKind : uint8_t {
  // Scores [n, classes, ...] or [n, ..., classes] against class numbers i64 [n, ...]; scores [n, classes, ...] against
  // a probability for each class, floats of the same sizes.
  cross_entropy,
  mse,         // (output - target)^2
  l1,          // |output - target|
  huber,       // quadratic below `delta`, linear above
  bce,         // probabilities against targets in 0..1
  bce_logits,  // the same before the sigmoid
  output,      // the program computes it: a scalar among its outputs
};

struct LossOptions {
  LossKind kind = LossKind::cross_entropy;
  std::string output;                 // which output counts; empty: the first
  double label_smoothing = 0;         // cross_entropy: 0 to 1
  int64_t ignored_label = -100;       // cross_entropy: samples with this label do not count
  std::vector<double> class_weights;  // cross_entropy: one for each class, or empty
  double delta = 1;                   // huber
};

// "cross_entropy", "mse", "l1", "huber", "bce", "bce_logits", else the name of an output. Throws usage for a word that
// is neither.
LossOptions parse_loss(const std::string& word, const Program& program);

// The model with an input "labels" of the dtype and sizes (without the batch) that the data has, the loss as its first
// output (the mean over the batch), its own outputs after it. Integers are compared as numbers where the loss takes
// targets. Throws invalid_input where output and labels do not fit:
// sizes seen and expected.
Program attach_loss(const Program& model, const LossOptions& options, Dtype label_dtype, const Sizes& label_sizes);

}  // namespace lissome
