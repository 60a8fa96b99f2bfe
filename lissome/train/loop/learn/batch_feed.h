// The batches that updates see, one in memory at a time, and how many samples each has.
#pragma once

#include <cstdint>
#include <vector>

#include "lissome/train/loop/learn/training_model.h"
#include "lissome/train/loop/watch/notice_log.h"
#include "lissome/train/optim/accumulate.h"
#include "lissome/train/step/batches.h"

namespace lissome {

// The number of samples of an update: `accumulate` batches. With TrainOptions::batch 0, finds by runs of `step` how
// many samples fit into memory at once. Says in `notices` what users might not expect. Throws the errors of
// BatchStep::find_largest().
int64_t choose_update_samples(const TrainingModel& model, BatchStep& step, const Dataset& data,
                              const TrainOptions& options, NoticeLog& notices);

class BatchFeed {
 public:
  // `samples`: of an update. Throws the errors of Batches.
  BatchFeed(const TrainingModel& model, const Dataset& data, int64_t samples, const TrainOptions& options)
      : samples_(samples),
        batches_(data, samples, model.fixed ? samples : model.least, model.with_loss.inputs.size(), options.seed,
                 options.batches) {}

  // Batch `index`, from 0, of an epoch, from 1. The one before it is freed first, because the loader reuses its memory.
  const std::vector<at::Tensor>& take(int64_t epoch, int64_t index) {
    last_.clear();
    last_ = batches_.take(epoch, index);
    return last_;
  }
  // The batch that was taken last; empty before the first.
  const std::vector<at::Tensor>& last() const { return last_; }
  int64_t samples() const { return samples_; }  // of an update
  Batches& batches() { return batches_; }
  const Batches& batches() const { return batches_; }

 private:
  int64_t samples_;
  Batches batches_;
  std::vector<at::Tensor> last_;
};

}  // namespace lissome
