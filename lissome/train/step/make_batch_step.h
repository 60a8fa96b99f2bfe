// The step that a training runs, planned inside its budget where there is one.
#pragma once

#include <string>

#include "lissome/train/loop/trainer.h"
#include "lissome/train/optim/accumulate.h"

namespace lissome {

// `with_loss` is `model` with its loss and outlives the step; `batch` samples are to run at once, `examples` are enough
// to record gradients. With options.recompute the step is planned to fit options.memory beside weights, gradients,
// states and the batch, which lie in memory or, where that does not fit and options.offload allows it, weights in a
// file (TrainingStep::streams_weights()), into which they are not moved here. Where neither fits, half as many samples
// run at once, down to one: then throws over_budget. Where weights are updated in the backward pass it throws at once.
BatchStep make_batch_step(const Program& model, const Program& with_loss, const Dataset& data,
                          const TrainOptions& options, int64_t batch, int64_t examples);

// For people: what is made again, what that costs and saves.
std::string describe_forecast(const StepForecast& forecast, int64_t batch);

}  // namespace lissome
