// The flags of `lissome train` and their conversion to options.
#pragma once

#include <string>
#include <vector>

#include "lissome/cli/train_words.h"
#include "lissome/distributed.h"
#include "lissome/train.h"

namespace lissome {

struct TrainFlags {
  std::string model, data, labels, validation,
      optimizer = "adamw", schedule = "constant", initializer, output, weights_output, snapshots,
      snapshot_every = "10min", resume, target_step, log, events, report, beside, offload, recompute = "auto",
      workers = "auto", transforms, bad_samples = "fatal", cache, batch = "32", precision = "f32", memory,
      memory_fraction, parallel = "auto", uneven = "pad", peer_timeout = "60s", compress = "none", bucket = "25MiB";
  LossFlags loss;
  std::vector<std::string> freeze, groups, disabled;
  double learning_rate = -1, weight_decay = -1, momentum = -1, clip_norm = 1, average = 0;
  int64_t epochs = 1, max_steps = 0, accumulate = 1, patience = 0, memory_every = 100, keep = 3, compress_from = 1000;
  int prefetch = 2, threads = 0;
  uint64_t seed = 0;
  bool states_8bit = false, keep_learning_rate = false, update_in_backward = false, pin_memory = false,
       lossy_activations = false, synchronize_batch_norm = false, find_unused = false, static_graph = false,
       diff = false, json = false;
};

// Throws usage, and HelpRequest.
void read_train_flags(TrainFlags& to, const std::vector<std::string>& arguments);
// Makes the options, without callbacks. Throws usage for a word that is not allowed and for a flag that the optimizer
// does not have.
TrainOptions make_train_options(const TrainFlags& flags, const Program& model);
// The place in a group of ranks that --parallel and the environment ask for; empty: this process trains alone. Throws
// usage for words that are not allowed, and the errors of find_group_place().
std::optional<GroupPlace> choose_group_place(const TrainFlags& flags);
// The folder for snapshots: --snapshots, else --resume, else a folder beside the output.
std::string choose_snapshot_folder(const TrainFlags& flags);

}  // namespace lissome
