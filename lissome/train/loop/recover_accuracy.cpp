#include "lissome/train/loop/recover_accuracy.h"

namespace lissome {

Trained recover_accuracy(const Program& fake_quantized, const Dataset& data, const RecoveryOptions& options,
                         const WorkControl& control) {
  TrainOptions training;
  training.loss = options.loss;
  for (const char* scales : {"*.input_scale", "*.weight_scale"})
    training.groups.push_back({.pattern = scales, .weight_decay = 0});
  training.learning_rate = options.learning_rate;
  training.schedule = "cosine";
  training.epochs = options.epochs;
  training.batch = options.batch;
  training.threads = options.threads;
  training.seed = options.seed;
  return train(fake_quantized, data, nullptr, training, control);
}

}  // namespace lissome
