// The loop of a training: epochs of steps, a verdict after each epoch, snapshots between. It says in which order its
// parts work; what they do stands in their own files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lissome/train/budget/allocation_meter.h"
#include "lissome/train/loop/epoch_judge.h"
#include "lissome/train/loop/learn/batch_feed.h"
#include "lissome/train/loop/learn/learner.h"
#include "lissome/train/loop/learn/training_model.h"
#include "lissome/train/loop/training_course.h"
#include "lissome/train/loop/training_snapshots.h"
#include "lissome/train/loop/watch/notice_log.h"
#include "lissome/train/loop/watch/step_watch.h"

namespace lissome {

class TrainLoop {
 public:
  // Prepares everything up to the first step. `live_before`: bytes that were live before the training began
  // (start_metering()). References must outlive the loop; `validation` may be null. Throws the errors of train().
  TrainLoop(TrainingModel model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
            const TrainingFacts& facts, const WorkControl& control, int64_t live_before);

  NoticeLog& notices() { return notices_; }
  // The precision may be measured again if steps become slow.
  void leave_precision_open() { learner_.step().leave_precision_open(); }
  // Continues from a snapshot that was found in options.resume, if one was. Throws the errors of restore_snapshot().
  void resume(const FoundSnapshot& found);
  // Saves snapshots from now on. Throws the errors of SnapshotFolder.
  void save_to(const SnapshotOptions& snapshots) { snapshots_.open(snapshots); }
  // Runs to the end, once.
  TrainRecord run();

 private:
  void add_notice(const std::string& text);  // not if it is empty
  TrainLength length() const;
  bool is_last_step() const { return length().reached_most(course_.record.steps); }
  bool is_over() const;
  void run_epoch();
  void run_steps(double seconds_before, const Stopwatch& watch);
  std::optional<TrainStepRecord> run_step();
  std::optional<UpdatePart> compute_loss(const std::vector<at::Tensor>& batch, const Learner::Moment& moment);
  // Of steps whose gradients are not finite: tells of the first, and of all at the end. Throws invalid_input if all
  // were.
  void report_skipped(int64_t step);
  void judge_skipped();
  void judge_epoch(EpochRecord& epoch);
  void measure_training_samples();
  TrainingState state();
  void save_snapshot();

  const Dataset& data_;
  const TrainOptions& options_;
  const WorkControl& control_;
  NoticeLog notices_;
  Learner learner_;
  TrainingMemory limit_;
  BatchFeed feed_;
  Schedule schedule_;
  StepWatch watch_;
  EpochJudge judge_;
  TrainingSnapshots snapshots_;
  TrainingCourse course_;
};

}  // namespace lissome
