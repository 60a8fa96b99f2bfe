// Measures loss and metrics on data that is not trained on, with the current weights, in eval form.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lissome/data.h"
#include "lissome/measure.h"
#include "lissome/program.h"
#include "lissome/train/loop/trainer.h"

namespace lissome {

struct ValidationResult {
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;
};

// `program` is in eval form and its first output is the mean loss of `options`. Runs `batch` samples at once; a last
// batch of fewer than `least` samples is left out. Batches are weighted as parts of an update are, see weigh_labels(),
// and images normalized as in training. Metrics are the built-in ones that fit, then those of `options`; all need
// labels. Empty if there is no full batch or if the work was stopped.
std::optional<ValidationResult> validate(const Program& program, const Dataset& data, int64_t batch, int64_t least,
                                         const TrainOptions& options, const WorkControl& control);

}  // namespace lissome
