// See step_watch.h.
#include "lissome/train/loop/watch/step_watch.h"

namespace lissome {

StepWatch::StepWatch(const TrainOptions& options, const WorkControl& control, NoticeLog& notices,
                     const ProgressMeter& progress, const MemoryWatch& memory)
    : callbacks_(options.callbacks),
      control_(control),
      notices_(notices),
      monitor_(options.monitor),
      progress_(progress),
      memory_(memory) {}

void StepWatch::observe(const TrainStepRecord& step, TrainingCourse& course, BatchFeed& feed, CurrentStep& running) {
  if (callbacks_.on_step) callbacks_.on_step(step);
  watch_speed(step, feed, running);
  control_.report(progress_.describe(course, step));
  const bool had_samples = !running.batch_step().last_inputs().empty();  // a rank of a group may have none
  if (had_samples && memory_.is_due(course.record)) look_at_memory(course.record, running);
  for (const std::string& text : feed.batches().list_new_bad_samples()) notices_.add(text);
  if (const std::optional<std::string> settled = feed.batches().tune()) notices_.add(*settled);
}

// A source may become slower than when its workers were chosen, and so may the processor.
void StepWatch::watch_speed(const TrainStepRecord& step, BatchFeed& feed, CurrentStep& running) {
  const auto computes_slowly = [&] { return monitor_.slow() && !monitor_.starved(); };
  const bool was_starved = monitor_.starved(), computed_slowly = computes_slowly();
  for (const std::string& text : monitor_.observe(step)) notices_.add(text);
  if (!was_starved && monitor_.starved() && feed.batches().tune_anew())
    notices_.add("workers and prefetch are tried anew, and the fastest setting is kept");
  if (!computed_slowly && computes_slowly() && !feed.last().empty()) running.look_for_faster(feed.last(), notices_);
}

void StepWatch::look_at_memory(TrainRecord& record, const CurrentStep& running) {
  BatchStep& step = running.batch_step();
  const MemoryRecord memory = memory_.look(step.step(), step.last_inputs(), running.count_bytes(), record);
  if (const std::optional<std::string> growth = memory_.check_growth(memory.allocated)) notices_.add(*growth);
  if (callbacks_.on_memory) callbacks_.on_memory(memory);
}

}  // namespace lissome
