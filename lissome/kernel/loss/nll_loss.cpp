// The loss itself, and the portable form of its gradient.
#include "lissome/kernel/loss/nll_loss.h"

#include <cmath>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/loss/kernel_versions.h"

namespace lissome {

void nll_loss_portable(const NllLossCall& call, int part, int /*parts*/) {
  if (part != 0) return;
  double sum = 0;
  int64_t counted = 0;
  for (int64_t m = 0; m < call.rows; ++m) {
    const int64_t label = call.labels[m];
    if (label == call.ignored) continue;
    if (label < 0 || label >= call.classes) {
      *call.fault = call.fault_code;
      continue;
    }
    sum -= call.logarithms[m * call.classes + label];
    ++counted;
  }
  *call.counted = static_cast<float>(counted);
  *call.loss = static_cast<float>(call.mean ? sum / static_cast<double>(counted) : sum);
}

void cross_entropy_gradient_portable(const CrossEntropyGradientCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const double factor = call.mean ? static_cast<double>(*call.dloss) / *call.counted : *call.dloss;
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const int64_t label = call.labels[m];
    for (int64_t k = 0; k < call.classes; ++k) {
      const int64_t at = m * call.classes + k;
      const double dx = (std::exp(static_cast<double>(call.logarithms[at])) - (k == label ? 1 : 0)) * factor;
      call.dx[at] = label == call.ignored ? 0 : static_cast<float>(dx);
    }
  }
}

}  // namespace lissome
