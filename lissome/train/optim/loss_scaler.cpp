// See loss_scaler.h.
#include "lissome/train/optim/loss_scaler.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>

namespace lissome {
namespace {

void check_scale_option(bool holds, std::string_view rule, double seen) {
  if (!holds) throw_error(ErrorKind::invalid_input, "loss scale: ", rule, ", not ", seen);
}

at::Tensor take(const NamedTensors& state, std::string_view name, at::ScalarType dtype) {
  const auto found = std::find_if(state.begin(), state.end(), [&](const auto& item) { return item.first == name; });
  if (found == state.end()) throw_error(ErrorKind::invalid_input, "the state of the loss scale lacks ", quote(name));
  if (found->second.dim() != 0 || found->second.scalar_type() != dtype)
    throw_error(ErrorKind::invalid_input, "the state of the loss scale: ", quote(name), " is ",
                dtype_name(dtype_of(found->second.scalar_type())), format_sizes(found->second.sizes().vec()), ", not ",
                dtype_name(dtype_of(dtype)), "[]");
  return found->second;
}

}  // namespace

LossScaler::LossScaler(const LossScalerOptions& options)
    : options_(options), scale_(static_cast<float>(options.initial)) {
  check_scale_option(std::isfinite(scale_) && scale_ > 0, "the initial scale must be above 0", options.initial);
  check_scale_option(options.growth > 1, "growth must be above 1", options.growth);
  check_scale_option(options.backoff > 0 && options.backoff < 1, "backoff must be between 0 and 1", options.backoff);
  check_scale_option(options.interval > 0, "the interval must be above 0", static_cast<double>(options.interval));
}

void LossScaler::update(bool skipped) {
  if (skipped) {
    scale_ = static_cast<float>(scale_ * options_.backoff);
    tracker_ = 0;
    return;
  }
  if (++tracker_ < options_.interval) return;
  const auto grown = static_cast<float>(scale_ * options_.growth);
  if (std::isfinite(grown)) scale_ = grown;
  tracker_ = 0;
}

NamedTensors LossScaler::state() const {
  return {{"loss_scale", at::scalar_tensor(scale_, at::kFloat)},
          {"growth_tracker", at::scalar_tensor(tracker_, at::kLong)}};
}

void LossScaler::restore_state(const NamedTensors& state) {
  const auto scale = take(state, "loss_scale", at::kFloat).item<float>();
  const auto tracker = take(state, "growth_tracker", at::kLong).item<int64_t>();
  check_scale_option(std::isfinite(scale) && scale > 0, "the saved scale must be above 0", scale);
  check_scale_option(tracker >= 0 && tracker < options_.interval,
                     "steps since the scale grew must be below the interval", static_cast<double>(tracker));
  scale_ = scale, tracker_ = tracker;
}

Program attach_loss_scale(const Program& program) {
  Program scaled = program;
  LISSOME_CHECK(!scaled.outputs.empty() && scaled.outputs.front().value.is_value(), "a program without a loss");
  const ValueType scalar{ValueKind::tensor, Dtype::f32, true, {}};
  const ValueId scale = scaled.add_input("loss_scale", scalar);
  ProgramOutput& loss = scaled.outputs.front();
  loss.value = scaled.add_node(Op::find("aten::mul.Tensor"), {loss.value, scale}, {scalar}).result();
  return scaled;
}

}  // namespace lissome
