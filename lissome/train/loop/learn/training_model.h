// The programs that a training runs, and how many samples they take.
#pragma once

#include <cstdint>

#include "lissome/data.h"
#include "lissome/program.h"
#include "lissome/train/loop/trainer.h"

namespace lissome {

struct TrainingModel {
  const Program& model;      // fitted to the data (fit_model.h); must outlive this
  bool fixed = false;        // whether the model takes exactly `batch` samples
  int64_t least = 1;         // fewest samples that the model takes at once
  int64_t batch = 1;         // samples that run at once, unless memory decides it (TrainOptions::batch 0)
  int64_t examples = 1;      // samples that are enough to record gradients
  Program with_loss;         // the model with its loss as the first output; frozen parameters are buffers
  Program judged;            // for any batch, with the loss, in eval form, with the same weights
  int64_t least_judged = 1;  // fewest samples that `judged` takes at once
};

// `validated`: the model for any batch, which takes the samples of `validation` too; that may be null. Throws the
// errors of choose_batch(), attach_checked_loss() and freeze_parameters().
TrainingModel make_training_model(const Program& model, const Program& validated, const Dataset& data,
                                  const Dataset* validation, const TrainOptions& options);

// The program in eval form: running statistics, no dropout.
Program make_eval_form(Program program);

}  // namespace lissome
