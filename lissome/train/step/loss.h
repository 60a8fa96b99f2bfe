// Attaches the loss that training minimizes to a model, as nodes of its program.
#pragma once

#include <algorithm>
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
  bce_logits,  // logits against targets in 0..1
  output,      // a scalar output of the program is the loss
};

struct LossOptions {
  LossKind kind = LossKind::cross_entropy;
  std::string output;                 // name of the output that is the loss, or that it compares; empty: the first
  double label_smoothing = 0;         // cross_entropy: 0 to 1
  int64_t ignored_label = -100;       // cross_entropy: samples with this label are ignored
  std::vector<double> class_weights;  // cross_entropy: one for each class, or empty
  double delta = 1;                   // huber
  bool operator==(const LossOptions&) const = default;
};

// Reads "cross_entropy", "mse", "l1", "huber", "bce", "bce_logits", each also with the name of the output that it
// compares ("mse:depth"), or the name of an output that is the loss. Throws usage for another word.
LossOptions parse_loss(const std::string& word, const Program& program);

// Sizes without inner dimensions of 1: labels and outputs that agree in these fit each other, as [N] and [N, 1] do.
template <typename Size>
std::vector<Size> drop_ones(std::vector<Size> sizes) {
  if (sizes.size() > 1) sizes.erase(std::remove(sizes.begin() + 1, sizes.end(), Size(1)), sizes.end());
  return sizes;
}

// What a user might not expect of how `program`, with its loss, compares: which of several outputs, and which of two
// dimensions holds classes where both may. One sentence each.
std::vector<std::string> describe_comparison(const Program& model, const LossOptions& options,
                                             const Sizes& label_sizes);

// Adds an input "labels" of the dtype and sizes (without the batch) of the data, and the mean loss over the batch as
// the first output, before the model's own. Integer labels are compared as numbers if the loss takes targets, which may
// differ from the output by dimensions of 1. Throws
// invalid_input, with the sizes seen and expected, if output and labels do not fit.
Program attach_loss(const Program& model, const LossOptions& options, Dtype label_dtype, const Sizes& label_sizes);

}  // namespace lissome
