// The step that a training runs. If steps become slow, a faster one may take its place.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lissome/train/budget/training_bytes.h"
#include "lissome/train/loop/learn/training_model.h"
#include "lissome/train/loop/watch/notice_log.h"
#include "lissome/train/optim/accumulate.h"
#include "lissome/train/remat/offload_weights.h"

namespace lissome {

class CurrentStep {
 public:
  // Makes the step in the precision that `options` name, and moves weights into a file if the step was planned for
  // that. All arguments must outlive it. Throws the errors of make_batch_step() and OffloadedWeights::move().
  CurrentStep(const TrainingModel& model, const Dataset& data, const TrainOptions& options, OffloadedWeights& weights);
  CurrentStep(const CurrentStep&) = delete;
  CurrentStep& operator=(const CurrentStep&) = delete;

  // The reference holds until look_for_faster().
  BatchStep& batch_step() const { return *step_; }
  Dtype precision() const { return precision_; }
  // The bytes that training holds beside the values inside this step.
  TrainingBytes count_bytes() const;
  // The notes of the step since the last call.
  std::vector<std::string> list_new_notes();

  // Lets look_for_faster() measure the other precision. To be called if the precision was chosen by measurement.
  void leave_precision_open() { is_precision_open_ = true; }
  // Measures other settings on `batch` and keeps the fastest; says in `notices` what it found. Only automatic settings
  // change; settings that the user gave stay.
  void look_for_faster(const std::vector<at::Tensor>& batch, NoticeLog& notices);

 private:
  std::unique_ptr<BatchStep> make(Dtype precision);
  std::string choose_other_precision(const std::vector<at::Tensor>& batch);

  const TrainingModel& model_;
  const Dataset& data_;
  const TrainOptions& options_;
  OffloadedWeights& weights_;
  Dtype precision_;
  bool is_precision_open_ = false;
  std::unique_ptr<BatchStep> step_;
  size_t reported_ = 0;  // notes of the step that list_new_notes() gave
};

}  // namespace lissome
