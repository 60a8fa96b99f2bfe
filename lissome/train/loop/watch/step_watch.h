// Watches a training step by step: tells callbacks and people, and acts on what it sees where settings are automatic.
// Workers are tuned anew when steps wait for data, and another step is tried when steps become slow.
#pragma once

#include <cstdint>

#include "lissome/measure.h"
#include "lissome/train/loop/learn/batch_feed.h"
#include "lissome/train/loop/learn/current_step.h"
#include "lissome/train/loop/performance_monitor.h"
#include "lissome/train/loop/trainer.h"
#include "lissome/train/loop/training_course.h"
#include "lissome/train/loop/watch/memory_watch.h"
#include "lissome/train/loop/watch/notice_log.h"
#include "lissome/train/loop/watch/progress_meter.h"
#include "lissome/train/loop/watch/resident_reader.h"

namespace lissome {

class StepWatch {
 public:
  // `options`, `control` and `notices` must outlive it. Throws the errors of PerformanceMonitor.
  StepWatch(const TrainOptions& options, const WorkControl& control, NoticeLog& notices, const ProgressMeter& progress,
            const MemoryWatch& memory);

  // Resident set of the process in bytes, see ResidentReader.
  double read_memory() { return resident_.read(); }
  // To be called after each step, which `course` counts as its last. May change how `feed` loads and what `running` is.
  void observe(const TrainStepRecord& step, TrainingCourse& course, BatchFeed& feed, CurrentStep& running);

 private:
  void watch_speed(const TrainStepRecord& step, BatchFeed& feed, CurrentStep& running);
  void look_at_memory(TrainRecord& record, const CurrentStep& running);

  const TrainCallbacks& callbacks_;
  const WorkControl& control_;
  NoticeLog& notices_;
  PerformanceMonitor monitor_;
  ProgressMeter progress_;
  MemoryWatch memory_;
  ResidentReader resident_;
};

}  // namespace lissome
