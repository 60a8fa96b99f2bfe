// The facts that must be equal for a training to continue from another's snapshot: model, loss, optimizer, data and so
// on, each as a text that people can compare. The length of the training is not among them.
#pragma once

#include "lissome/train/loop/snapshot_file.h"
#include "lissome/train/loop/trainer.h"

namespace lissome {

// Values are compared by hashes of at most 64 samples that are spread over the data.
TrainingFacts list_facts(const Program& model, const Dataset& data, const Dataset* validation,
                         const TrainOptions& options);

// 16 hexadecimal digits of all weights and state that the program holds.
std::string hash_weights(const Program& model);
// 16 hexadecimal digits of all names and numbers in a snapshot.
std::string hash_snapshot(const Snapshot& snapshot);

}  // namespace lissome
