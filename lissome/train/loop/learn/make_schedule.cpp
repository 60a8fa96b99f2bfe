// See make_schedule.h.
#include "lissome/train/loop/learn/make_schedule.h"

namespace lissome {
namespace {

double choose_learning_rate(const TrainOptions& options) {
  const double own = std::visit([](const auto& kind) { return kind.lr; }, options.optimizer);
  const auto factor = options.scale_learning_rate ? static_cast<double>(options.accumulate) : 1.0;
  return options.learning_rate.value_or(own) * factor;
}

}  // namespace

Schedule make_schedule(const TrainOptions& options, const TrainLength& length) {
  return parse_schedule(options.schedule,
                        {choose_learning_rate(options), length.total_steps(), length.steps_per_epoch});
}

}  // namespace lissome
