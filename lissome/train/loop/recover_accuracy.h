// Training that makes up for what a lower precision loses.
#pragma once

#include <cstdint>

#include "lissome/data.h"
#include "lissome/train/loop/trainer.h"

namespace lissome {

struct RecoveryOptions {
  LossOptions loss;
  int64_t epochs = 3;
  int64_t batch = 32;
  double learning_rate = 1e-4;  // of AdamW, falling to 0 along a cosine
  int threads = 0;
  uint64_t seed = 0;
  bool operator==(const RecoveryOptions&) const = default;
};

// Trains a program of insert_fake_quantization() in place; its scales have no weight decay. Throws the errors of
// train().
Trained recover_accuracy(const Program& fake_quantized, const Dataset& data, const RecoveryOptions& options,
                         const WorkControl& control = {});

}  // namespace lissome
