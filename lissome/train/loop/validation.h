// A look at data that is not trained on, with the weights as they are now, in eval form.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lissome/data.h"
#include "lissome/measure.h"
#include "lissome/program.h"
#include "lissome/train/step/metric.h"

namespace lissome {

struct ValidationResult {
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;
};

// `program` is in eval form and gives its loss first; `batch` samples at once, and never fewer than `least`: what is
// left then is left out. Metrics are the ready ones that fit, then `metrics`; all need labels. Nothing where no batch
// is full, and where the work was stopped.
std::optional<ValidationResult> validate(const Program& program, const Dataset& data, int64_t batch, int64_t least,
                                         const std::vector<TrainMetric>& metrics, const WorkControl& control);

}  // namespace lissome
