// Makes the step that a training runs, planned inside its budget if there is one.
#pragma once

#include <string>

#include "lissome/train/loop/trainer.h"
#include "lissome/train/optim/accumulate.h"

namespace lissome {

// `with_loss`: `model` with its loss, which must outlive the step. `batch`: samples that run at once. `examples`:
// samples that are enough to record gradients. With options.recompute the step is planned to fit options.memory beside
// weights, gradients, states and the batch. If weights in memory do not fit and options.offload names a folder, the
// step is planned for weights in a file (TrainingStep::streams_weights()); it does not move them there. If neither
// fits, half as many samples run at once, down to one, before this throws over_budget. A step that updates weights in
// the backward pass cannot be halved and throws at once.
BatchStep make_batch_step(const Program& model, const Program& with_loss, const Dataset& data,
                          const TrainOptions& options, int64_t batch, int64_t examples);

// Describes for people what is recomputed, what it costs and what it saves.
std::string describe_forecast(const StepForecast& forecast, int64_t batch);

}  // namespace lissome
