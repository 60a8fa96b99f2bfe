#include "lissome/train/loop/early_stop.h"

#include <ATen/core/grad_mode.h>

#include <cmath>

#include "lissome/base.h"
#include "lissome/train/remat/offload_weights.h"

namespace lissome {
namespace {

void copy_all(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < from.size(); ++i) {
    to[i].copy_(from[i]);
    release_weight(from[i]), release_weight(to[i]);
  }
}

}  // namespace

EarlyStop::EarlyStop(std::vector<at::Tensor> tensors, const EarlyStopOptions& options)
    : options_(options), tensors_(std::move(tensors)) {
  if (options.patience < 1 || !(options.min_delta >= 0)) {
    throw_error(ErrorKind::invalid_input, "early stopping: patience must be at least 1 and min_delta at least 0, not ",
                options.patience, " and ", options.min_delta);
  }
}

bool EarlyStop::observe(double metric) {
  const double sign = options_.better == Better::lower ? -1 : 1;
  const bool is_best = best_ ? sign * (metric - *best_) > options_.min_delta : !std::isnan(metric);
  if (!is_best) {
    ++bad_metrics_;
    return false;
  }
  best_ = metric;
  bad_metrics_ = 0;
  if (kept_.empty()) {
    for (const at::Tensor& tensor : tensors_) {
      kept_.push_back(tensor.detach().clone());
      release_weight(tensor);
    }
  } else {
    copy_all(tensors_, kept_);
  }
  return true;
}

void EarlyStop::restore_best() { copy_all(kept_, tensors_); }

void EarlyStop::restore(std::optional<double> best, int64_t bad_metrics, std::vector<at::Tensor> kept) {
  best_ = best;
  bad_metrics_ = bad_metrics;
  kept_ = std::move(kept);
}

}  // namespace lissome
