#include "lissome/train/budget/choose_parts.h"

#include <algorithm>

#include "lissome/train/budget/compare_step_times.h"

namespace lissome {

std::string choose_parts(BatchStep& step, const std::vector<at::Tensor>& batch) {
  const int64_t least = step.least_at_once();
  int64_t taken = std::min(step.at_once(), batch.front().size(0));
  std::string report;
  const auto run = [&](int64_t at_once) {
    step.set_at_once(at_once);
    step.rehearse(batch);
  };
  while (taken / 2 >= least) {
    const int64_t half = taken / 2;
    const StepComparison compared = compare_step_times([&] { run(taken); }, [&] { run(half); });
    report += (report.empty() ? "a batch by " : ", by ") + std::to_string(half) + " samples at once takes " +
              compared.factor + " as by " + std::to_string(taken);
    if (!compared.pays) break;
    taken = half;
  }
  step.set_at_once(taken);
  return std::to_string(taken) + " samples run at once from now on" + (report.empty() ? "" : ": " + report);
}

}  // namespace lissome
