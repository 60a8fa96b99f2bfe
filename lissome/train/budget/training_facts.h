// What must be equal for a training to go on from another's snapshot: model, loss, optimizer, data and the like, each
// as a text that people can compare. How long it trains is not among them.
#pragma once

#include "lissome/train/loop/snapshot_file.h"
#include "lissome/train/loop/trainer.h"

namespace lissome {

TrainingFacts list_facts(const Program& model, const Dataset& data, const TrainOptions& options);

}  // namespace lissome
