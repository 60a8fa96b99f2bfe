// From a model and its options to a loop that is ready to run: precision, storage of activations and the range of
// batches are chosen here, snapshots of other trainings are refused, and first weights are drawn.
#pragma once

#include <memory>
#include <optional>

#include "lissome/train/budget/choose_precision.h"
#include "lissome/train/loop/train_loop.h"
#include "lissome/train/remat/check_lossy.h"

namespace lissome {

// A training for one fit of the model to the data. The loop refers to the other members.
struct StartedTraining {
  Program fitted;
  TrainOptions options;
  std::optional<PrecisionChoice> precision;  // where the options leave it open
  std::optional<LossyCheck> lossy;           // where the options allow lossy storage
  std::unique_ptr<TrainLoop> loop;
};

// Starts with the widest range of batches for which gradients can be recorded. `found`: the snapshot to continue from.
// Throws the errors of train().
std::unique_ptr<StartedTraining> start_training(const Program& model, const Dataset& data, const Dataset* validation,
                                                const TrainOptions& options, const FoundSnapshot& found,
                                                const WorkControl& control);

// Refuses options that exclude each other, and a folder or a form of the model that does not fit them. Throws usage or
// invalid_input.
void check_train_options(const Program& model, const TrainOptions& options);

}  // namespace lissome
