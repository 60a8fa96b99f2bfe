// Computes the values by the closed form of each shape.
#include "lissome/train/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lissome/base.h"

namespace lissome {
namespace {

void require(bool holds, std::string_view shape, std::string_view rule, double seen) {
  if (!holds) throw_error(ErrorKind::invalid_input, "schedule ", quote(shape), ": ", rule, ", not ", seen);
}

void check_shape(const ConstantRate& shape) {
  require(shape.factor >= 0, "constant", "factor must be at least 0", shape.factor);
}
void check_shape(const LinearRate& shape) {
  require(shape.start >= 0 && shape.start <= 1, "linear", "start must be in 0..1", shape.start);
  require(shape.end >= 0 && shape.end <= 1, "linear", "end must be in 0..1", shape.end);
  require(shape.steps > 0, "linear", "steps must be at least 1", static_cast<double>(shape.steps));
}
void check_shape(const CosineRate& shape) {
  require(shape.steps > 0, "cosine", "steps must be at least 1", static_cast<double>(shape.steps));
  require(shape.min >= 0, "cosine", "min must be at least 0", shape.min);
}
void check_shape(const OneCycleRate& shape) {
  require(shape.max > 0, "onecycle", "max must be above 0", shape.max);
  require(shape.steps > 1, "onecycle", "steps must be at least 2", static_cast<double>(shape.steps));
  require(shape.pct_start >= 0 && shape.pct_start <= 1, "onecycle", "pct_start must be in 0..1", shape.pct_start);
  require(shape.div_factor > 0, "onecycle", "div_factor must be above 0", shape.div_factor);
  require(shape.final_div_factor > 0, "onecycle", "final_div_factor must be above 0", shape.final_div_factor);
}
void check_shape(const StepRate& shape) {
  require(shape.size > 0, "step", "size must be at least 1", static_cast<double>(shape.size));
}
void check_shape(const MultiStepRate& shape) {
  const auto falls = std::is_sorted_until(shape.milestones.begin(), shape.milestones.end());
  require(falls == shape.milestones.end(), "multistep", "each milestone must be at least the one before",
          falls == shape.milestones.end() ? 0 : static_cast<double>(*falls));
}
void check_shape(const ExponentialRate& shape) {
  require(shape.gamma > 0, "exponential", "gamma must be above 0", shape.gamma);
}
void check_shape(const PolynomialRate& shape) {
  require(shape.steps > 0, "polynomial", "steps must be at least 1", static_cast<double>(shape.steps));
}
void check_shape(const PlateauRate& shape) {
  require(shape.factor > 0 && shape.factor < 1, "plateau", "factor must be between 0 and 1", shape.factor);
}

RatePoint rate_at(const ConstantRate& shape, double rate, int64_t) { return {rate * shape.factor, {}}; }

RatePoint rate_at(const LinearRate& shape, double rate, int64_t step) {
  const double share = static_cast<double>(std::min(step, shape.steps)) / static_cast<double>(shape.steps);
  return {rate * (shape.start + (shape.end - shape.start) * share), {}};
}

RatePoint rate_at(const CosineRate& shape, double rate, int64_t step) {
  const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(shape.steps);
  return {shape.min + (rate - shape.min) * (1 + std::cos(angle)) / 2, {}};
}

// One phase of a cycle, from the end of the phase before.
struct CyclePhase {
  double end;  // the step
  double from, to, momentum_from, momentum_to;
};

std::vector<CyclePhase> list_phases(const OneCycleRate& shape) {
  const double first = shape.max / shape.div_factor, last = first / shape.final_div_factor;
  const double rise = shape.pct_start * static_cast<double>(shape.steps) - 1;
  const double end = static_cast<double>(shape.steps - 1);
  const CyclePhase up = {rise, first, shape.max, shape.max_momentum, shape.base_momentum};
  if (!shape.three_phase) return {up, {end, shape.max, last, shape.base_momentum, shape.max_momentum}};
  return {up,
          {2 * rise, shape.max, first, shape.base_momentum, shape.max_momentum},
          {end, first, last, shape.max_momentum, shape.max_momentum}};
}

RatePoint rate_at(const OneCycleRate& shape, double, int64_t step) {
  const double now = static_cast<double>(std::min(step, shape.steps - 1));
  const std::vector<CyclePhase> phases = list_phases(shape);
  double begin = 0;
  size_t at = 0;
  for (; at + 1 < phases.size() && now > phases[at].end; ++at) begin = phases[at].end;
  const CyclePhase& phase = phases[at];
  const double share = phase.end == begin ? 1 : (now - begin) / (phase.end - begin);
  const auto between = [&](double from, double to) {
    if (!shape.cosine) return (to - from) * share + from;
    return to + (from - to) / 2 * (std::cos(std::numbers::pi * share) + 1);
  };
  RatePoint point = {between(phase.from, phase.to), {}};
  if (shape.cycle_momentum) point.momentum = between(phase.momentum_from, phase.momentum_to);
  return point;
}

RatePoint rate_at(const StepRate& shape, double rate, int64_t step) {
  return {rate * std::pow(shape.gamma, static_cast<double>(step / shape.size)), {}};
}

RatePoint rate_at(const MultiStepRate& shape, double rate, int64_t step) {
  const auto passed = std::upper_bound(shape.milestones.begin(), shape.milestones.end(), step);
  return {rate * std::pow(shape.gamma, static_cast<double>(passed - shape.milestones.begin())), {}};
}

RatePoint rate_at(const ExponentialRate& shape, double rate, int64_t step) {
  return {rate * std::pow(shape.gamma, static_cast<double>(step)), {}};
}

RatePoint rate_at(const PolynomialRate& shape, double rate, int64_t step) {
  const double left = 1 - static_cast<double>(std::min(step, shape.steps)) / static_cast<double>(shape.steps);
  return {rate * std::pow(left, shape.power), {}};
}

bool is_better(const PlateauRate& shape, double metric, double best) {
  const double sign = shape.better == Better::lower ? -1 : 1;
  return sign * metric > sign * (shape.relative ? best * (1 + sign * shape.threshold) : best + sign * shape.threshold);
}

}  // namespace

Schedule::Schedule(double learning_rate, std::vector<SchedulePart> parts)
    : learning_rate_(learning_rate), parts_(std::move(parts)) {
  if (!(learning_rate >= 0) || learning_rate > std::numeric_limits<float>::max()) {
    throw_error(ErrorKind::invalid_input, "a learning rate must be at least 0 and fit f32, not ", learning_rate);
  }
  if (parts_.empty() || parts_.front().begin != 0) {
    throw_error(ErrorKind::invalid_input, "a schedule needs a first part that begins at step 0");
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (i > 0 && parts_[i].begin <= parts_[i - 1].begin) {
      throw_error(ErrorKind::invalid_input, "a part of the schedule begins at step ", parts_[i].begin,
                  ", but the part before it begins at ", parts_[i - 1].begin);
    }
    if (parts_.size() > 1 && std::holds_alternative<PlateauRate>(parts_[i].shape)) {
      throw_error(ErrorKind::invalid_input,
                  "a plateau depends on the metric, not on steps, so it must be the only part of a schedule");
    }
    std::visit([](const auto& shape) { check_shape(shape); }, parts_[i].shape);
  }
  plateau_.learning_rate = learning_rate;
}

RatePoint Schedule::at(int64_t step) const {
  const auto after =
      std::find_if(parts_.begin() + 1, parts_.end(), [&](const SchedulePart& part) { return part.begin > step; });
  const SchedulePart& part = *(after - 1);
  return std::visit(
      [&](const auto& shape) -> RatePoint {
        if constexpr (std::is_same_v<std::decay_t<decltype(shape)>, PlateauRate>) {
          return {plateau_.learning_rate, {}};
        } else {
          return rate_at(shape, learning_rate_, step - part.begin);
        }
      },
      part.shape);
}

void Schedule::observe(double metric) {
  const auto* shape = std::get_if<PlateauRate>(&parts_.front().shape);
  if (shape == nullptr) return;
  const double worst = shape->better == Better::lower ? HUGE_VAL : -HUGE_VAL;
  if (is_better(*shape, metric, plateau_.best.value_or(worst))) {
    plateau_.best = metric;
    plateau_.bad_metrics = 0;
  } else {
    ++plateau_.bad_metrics;
  }
  if (plateau_.cooldown_left > 0) {
    --plateau_.cooldown_left;
    plateau_.bad_metrics = 0;
  }
  if (plateau_.bad_metrics <= shape->patience) return;
  const double lower = std::max(plateau_.learning_rate * shape->factor, shape->min);
  if (plateau_.learning_rate - lower > shape->eps) plateau_.learning_rate = lower;
  plateau_.cooldown_left = shape->cooldown;
  plateau_.bad_metrics = 0;
}

}  // namespace lissome
