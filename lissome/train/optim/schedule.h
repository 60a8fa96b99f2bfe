// Learning rates over the steps of training. Torch-free. A schedule is a list of parts. Each part is a shape with
// PyTorch's names and defaults that holds from its first step to that of the next part, and counts its own steps from 0
// as in SequentialLR. Values equal those of torch.optim.lr_scheduler. They are functions of the step, so a resumed run
// needs only the step, and the state of a plateau.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "lissome/train/budget/better.h"

namespace lissome {

// Rates are `learning_rate` of the schedule times a factor, unless noted otherwise. Steps are optimizer steps.
struct ConstantRate {
  double factor = 1;
};
struct LinearRate {  // LinearLR: from start to end over `steps`, then end
  double start = 1.0 / 3, end = 1;
  int64_t steps = 5;
};
struct CosineRate {  // CosineAnnealingLR: down to the rate `min` in `steps`, then up
  int64_t steps = 0;
  double min = 0;
};
struct OneCycleRate {  // OneCycleLR: up to the rate `max`, then far down; the last step is `steps` - 1
  double max = 0;
  int64_t steps = 0;
  double pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;
  bool cosine = true;  // false: linear
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
  bool relative = true;  // the threshold is a fraction of the best metric; false: a difference
  int64_t patience = 10, cooldown = 0;
  double min = 0, eps = 1e-8;  // rates
};
using RateShape = std::variant<ConstantRate, LinearRate, CosineRate, OneCycleRate, StepRate, MultiStepRate,
                               ExponentialRate, PolynomialRate, PlateauRate>;
struct SchedulePart {
  int64_t begin = 0;  // first step of the part
  RateShape shape;
};

// The state of a plateau, as plain data for snapshots.
struct PlateauState {
  double learning_rate = 0;
  std::optional<double> best;
  int64_t bad_metrics = 0, cooldown_left = 0;
};

struct RatePoint {
  double learning_rate = 0;
  std::optional<double> momentum;  // momentum of SGD, beta1 of Adam; only one-cycle sets it
};

class Schedule {
 public:
  // `parts` in the order of their first steps; the first begins at 0. Throws invalid_input for values out of range, and
  // for a plateau among several parts.
  Schedule(double learning_rate, std::vector<SchedulePart> parts);

  // The rate of optimizer step `step`, from 0.
  RatePoint at(int64_t step) const;
  // Takes the metric of an epoch; only a plateau uses it.
  void observe(double metric);

  const PlateauState& plateau() const { return plateau_; }
  void restore_plateau(const PlateauState& state) { plateau_ = state; }

 private:
  double learning_rate_;
  std::vector<SchedulePart> parts_;
  PlateauState plateau_;
};

// Values that the text of a schedule leaves open.
struct ScheduleSetting {
  double learning_rate = 0;
  int64_t total_steps = 0;      // of the whole training
  int64_t steps_per_epoch = 1;  // for lengths in epochs, such as "30e"
};
// Reads "onecycle", "cosine:warmup=100", "step:size=30e,gamma=0.1", "linear:steps=100+cosine@100": a shape with its
// fields, and further parts joined by "+", each with its first step behind "@". A shape that needs a length and names
// none fills its part. warmup=N puts a linear part of N steps, from 1/N of the rate, before the shape. Throws usage.
Schedule parse_schedule(std::string_view text, const ScheduleSetting& setting);

}  // namespace lissome
