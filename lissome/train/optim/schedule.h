// Learning rates over the steps of training, torch-free. A schedule is a list of parts, each a shape with PyTorch's
// names and defaults that holds from its first step to the next part's; values equal those of torch.optim.lr_scheduler,
// a part counting its own steps from 0 as in SequentialLR. They are functions of the step: a resumed run needs the step
// alone, and with a plateau its state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "lissome/train/budget/better.h"

namespace lissome {

// Rates are `learning_rate` of the schedule times a factor, unless said otherwise. Steps count optimizer steps.
struct ConstantRate {
  double factor = 1;
};
struct LinearRate {  // LinearLR: from start to end over `steps`, then end
  double start = 1.0 / 3, end = 1;
  int64_t steps = 5;
};
struct CosineRate {  // CosineAnnealingLR: down to `min`, a rate, in `steps`; up again after them
  int64_t steps = 0;
  double min = 0;
};
struct OneCycleRate {  // OneCycleLR: up to `max`, a rate, and far down; the last step is `steps` - 1
  double max = 0;
  int64_t steps = 0;
  double pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;
  bool cosine = true;  // else linear
  bool three_phase = false;
  bool cycle_momentum = true;  // momentum goes from max to base while the rate rises, and back
  double base_momentum = 0.85, max_momentum = 0.95;
};
struct StepRate {  // StepLR
  int64_t size = 0;
  double gamma = 0.1;
};
struct MultiStepRate {  // MultiStepLR
  std::vector<int64_t> milestones;
  double gamma = 0.1;
};
struct ExponentialRate {  // ExponentialLR
  double gamma = 0;
};
struct PolynomialRate {  // PolynomialLR: to zero in `steps`
  int64_t steps = 5;
  double power = 1;
};
struct PlateauRate {  // ReduceLROnPlateau: times `factor` after more than `patience` metrics without a better one
  Better better = Better::lower;
  double factor = 0.1, threshold = 1e-4;
  bool relative = true;  // the threshold is a share of the best metric, else a difference
  int64_t patience = 10, cooldown = 0;
  double min = 0, eps = 1e-8;  // rates
};
using RateShape = std::variant<ConstantRate, LinearRate, CosineRate, OneCycleRate, StepRate, MultiStepRate,
                               ExponentialRate, PolynomialRate, PlateauRate>;
struct SchedulePart {
  int64_t begin = 0;  // the step from which it holds
  RateShape shape;
};

// What a plateau has seen: plain, for snapshots.
struct PlateauState {
  double learning_rate = 0;
  std::optional<double> best;
  int64_t bad_metrics = 0, cooldown_left = 0;
};

struct RatePoint {
  double learning_rate = 0;
  std::optional<double> momentum;  // of SGD, beta1 of Adam; only one-cycle sets it
};

class Schedule {
 public:
  // Parts in the order of their first steps, the first at 0. Throws invalid_input for values out of range, and for a
  // plateau among several parts.
  Schedule(double learning_rate, std::vector<SchedulePart> parts);

  // The rate of optimizer step `step`, from 0.
  RatePoint at(int64_t step) const;
  // The metric of an epoch; only a plateau listens.
  void observe(double metric);

  const PlateauState& plateau() const { return plateau_; }
  void restore_plateau(const PlateauState& state) { plateau_ = state; }

 private:
  double learning_rate_;
  std::vector<SchedulePart> parts_;
  PlateauState plateau_;
};

// What a text leaves open.
struct ScheduleSetting {
  double learning_rate = 0;
  int64_t total_steps = 0;      // of the whole training
  int64_t steps_per_epoch = 1;  // of "30e", thirty epochs
};
// "onecycle", "cosine:warmup=100", "step:size=30e,gamma=0.1", "linear:steps=100+cosine@100": a shape with its fields,
// further ones joined by "+", each with the step from which it holds. What has a length and names none fills its part;
// warmup=N puts a linear part of N steps from 1/N of the rate before it. Throws usage: what is wrong, what is allowed.
Schedule parse_schedule(std::string_view text, const ScheduleSetting& setting);

}  // namespace lissome
