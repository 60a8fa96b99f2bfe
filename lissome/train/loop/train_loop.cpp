// See train_loop.h.
#include "lissome/train/loop/train_loop.h"

#include <cmath>

#include "lissome/base.h"
#include "lissome/train/loop/learn/make_schedule.h"
#include "lissome/train/loop/training_metrics.h"
#include "lissome/train/loop/watch/setup_notices.h"

namespace lissome {
namespace {

// Where gradients may have overflowed on their way.
std::string explain_overflow(const TrainOptions& options) {
  const auto* dense = std::get_if<DenseGradients>(&options.compression);
  const bool travels_in_f16 = options.group != nullptr && dense != nullptr && dense->dtype == Dtype::f16;
  return travels_in_f16 ? ". Gradients travel in fp16, which holds numbers up to 65504: --compress bf16 holds more"
                        : "";
}

}  // namespace

TrainLoop::TrainLoop(TrainingModel model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
                     const TrainingFacts& facts, const WorkControl& control, int64_t live_before)
    : data_(data),
      options_(options),
      control_(control),
      notices_(options.callbacks.on_notice),
      learner_(std::move(model), data, options),
      limit_(learner_.model().model, live_before - learner_.weights().metered(), options.memory, options.batch == 0,
             learner_.weights().saved()),
      feed_(learner_.model(), data,
            choose_update_samples(learner_.model(), learner_.step().batch_step(), data, options, notices_), options),
      schedule_(make_schedule(options, length())),
      watch_(options, control, notices_, ProgressMeter(length(), feed_.samples()),
             MemoryWatch(live_before, options.memory_every)),
      judge_(learner_, validation, options, control),
      snapshots_(facts) {
  for (const std::string& text : list_setup_notices(learner_.model(), learner_.step(), data, feed_.samples(), options))
    notices_.add(text);
  const int64_t steps = length().total_steps();
  add_notice(describe_average(options, steps));
  if (learner_.exchange() != nullptr) add_notice(learner_.exchange()->describe(steps));
}

void TrainLoop::add_notice(const std::string& text) {
  if (!text.empty()) notices_.add(text);
}

TrainLength TrainLoop::length() const {
  return {.epochs = options_.epochs, .steps_per_epoch = feed_.batches().per_epoch(), .max_steps = options_.max_steps};
}

void TrainLoop::resume(const FoundSnapshot& found) {
  for (const std::string& damaged : found.damaged)
    notices_.add("a snapshot is damaged, so an older one is loaded: " + damaged);
  if (found.path.empty()) {
    notices_.add("there is no snapshot in " + quote(options_.resume) + " yet, so training begins at its first step");
    return;
  }
  restore_snapshot(found.snapshot, state());
  const NamedTensors exchanged = found.snapshot.read_section("exchange");
  if (learner_.exchange() != nullptr) learner_.exchange()->restore(exchanged);
  if (has_kept_gradients(exchanged) && (learner_.exchange() == nullptr || !learner_.exchange()->keeps_gradients()))
    notices_.add(
        "what ranks kept of gradients that they did not send is dropped, because this training compresses none");
  if (course_.place.epoch_steps > length().steps_per_epoch)
    throw_error(ErrorKind::invalid_input, "the snapshot ", quote(found.path), " is ", course_.place.epoch_steps,
                " steps into an epoch; an epoch of these data has ", length().steps_per_epoch);
  if (course_.place.samples > course_.place.epoch_steps * feed_.samples())
    throw_error(ErrorKind::invalid_input, "the snapshot ", quote(found.path), " counts ", course_.place.samples,
                " samples in ", course_.place.epoch_steps, " steps of ", feed_.samples());
  learner_.weights().release();
  course_.first_step = course_.record.steps;
  notices_.add("training continues from " + quote(found.path) + ", after step " + std::to_string(course_.record.steps));
}

TrainRecord TrainLoop::run() {
  while (!is_over()) run_epoch();
  judge_.results().choose();
  TrainRecord& record = course_.record;
  learner_.check_weights(record.steps, snapshots_.name_good_state());
  judge_skipped();
  record.batch =
      options_.group == nullptr ? learner_.step().batch_step().at_once() : feed_.samples() / options_.accumulate;
  record.peak_memory = limit_.peak();  // of steps, without the measurements below
  if (!judge_.has_validation() && !record.interrupted) measure_training_samples();
  record.notes = notices_.texts();
  return std::move(record);
}

bool TrainLoop::is_over() const {
  const TrainRecord& record = course_.record;
  return course_.place.epoch > options_.epochs || record.interrupted || record.stopped_early || is_last_step();
}

void TrainLoop::run_epoch() {
  const Stopwatch watch;
  const double seconds_before = course_.place.seconds;
  run_steps(seconds_before, watch);
  EpochRecord epoch = course_.summarize_epoch();
  if (!course_.record.interrupted) judge_epoch(epoch);
  epoch.seconds = seconds_before + watch.seconds();
  course_.record.epochs.push_back(epoch);
  if (options_.callbacks.on_epoch) options_.callbacks.on_epoch(epoch);
  course_.begin_next_epoch();
}

// Runs the rest of the epoch; `watch` runs since it began or went on after `seconds_before`.
void TrainLoop::run_steps(double seconds_before, const Stopwatch& watch) {
  TrainRecord& record = course_.record;
  while (course_.place.epoch_steps < feed_.batches().per_epoch() && !record.interrupted && !is_last_step()) {
    const std::optional<TrainStepRecord> step = run_step();
    course_.place.seconds = seconds_before + watch.seconds();
    if (!step) {
      record.interrupted = true;
      if (course_.steps_here() > 0) save_snapshot();
      return;
    }
    watch_.observe(*step, course_, feed_, learner_.step());
    record.interrupted = learner_.must_end(control_);
    if (record.interrupted || learner_.must_save(snapshots_.is_due(record.steps))) save_snapshot();
  }
}

// Empty if it was interrupted; everything is then as before the step.
std::optional<TrainStepRecord> TrainLoop::run_step() {
  TrainStepRecord step{.epoch = course_.place.epoch, .step = course_.record.steps + 1};
  const Stopwatch watch;
  const std::vector<at::Tensor>& batch = feed_.take(step.epoch, course_.place.epoch_steps);
  step.seconds_data = watch.seconds();
  const RatePoint rate = schedule_.at(course_.record.steps);
  const StepOptions rates = {.lr = rate.learning_rate, .momentum = rate.momentum};
  const std::optional<UpdatePart> part =
      compute_loss(batch, {.step = step.step, .rates = rates, .save_due = snapshots_.is_due(step.step)});
  if (!part) return std::nullopt;
  step.loss = part->loss, step.samples = part->samples;
  const double seconds_computed = watch.seconds();
  const StepResult result = learner_.update_weights(rates, snapshots_.name_good_state());
  step.seconds_gradients = seconds_computed - step.seconds_data - learner_.seconds_in_gradients();
  step.seconds_update = watch.seconds() - seconds_computed + learner_.seconds_in_gradients();
  if (!result.skipped) judge_.results().follow_update();
  if (result.skipped && course_.record.skipped_steps == 0) report_skipped(step.step);
  step.learning_rate = rate.learning_rate;
  step.gradient_norm = result.gradient_norm;
  step.skipped = result.skipped;
  step.memory = watch_.read_memory();
  course_.add(step);
  return step;
}

// Steps in fp16 are skipped until the scale of the loss fits.
void TrainLoop::report_skipped(int64_t step) {
  if (learner_.step().batch_step().scaler() != nullptr) return;
  const std::string weight = learner_.find_nonfinite_gradient();
  notices_.add("step " + std::to_string(step) + " changed nothing, though its loss is finite: " +
               (weight.empty() ? "a gradient" : "the gradient of " + quote(weight)) +
               " holds NaN or infinity. Further such steps are counted, not named" + explain_overflow(options_));
}

void TrainLoop::judge_skipped() {
  const TrainRecord& record = course_.record;
  const bool scaled = learner_.step().batch_step().scaler() != nullptr;
  if (record.skipped_steps == record.steps && record.steps > 0 && !scaled && !record.interrupted) {
    const std::string weight = learner_.find_nonfinite_gradient();
    throw_error(
        ErrorKind::invalid_input, "nothing was trained, and nothing is written: in each of the ", record.steps,
        " steps ", weight.empty() ? "a gradient" : "the gradient of " + quote(weight),
        " was NaN or infinity, though the loss was finite. Look for a function in the model whose derivative has "
        "no value there, such as sqrt, log or xlogy at 0",
        explain_overflow(options_), ".\n", snapshots_.name_good_state());
  }
  constexpr int64_t kUsualInFp16 = 10;  // at most one in so many
  if (record.skipped_steps > (scaled ? record.steps / kUsualInFp16 : 1))
    notices_.add(std::to_string(record.skipped_steps) + " of " + std::to_string(record.steps) +
                 " steps changed nothing, because a gradient was NaN or infinity" +
                 (scaled ? " in fp16 with that scale of the loss" : ""));
}

// The loss of the batch, which is finite; its gradients are ready. Empty if it was interrupted.
std::optional<UpdatePart> TrainLoop::compute_loss(const std::vector<at::Tensor>& batch, const Learner::Moment& moment) {
  const std::optional<UpdatePart> part = learner_.compute_gradients(batch, moment, control_);
  if (!part) return std::nullopt;
  for (const std::string& text : learner_.step().list_new_notes()) notices_.add(text);
  if (learner_.exchange() != nullptr) add_notice(learner_.exchange()->take_note());
  if (part->weight == 0 && std::isnan(part->loss)) {  // a mean over nothing; its gradients are 0
    notices_.add("no label of the batch of step " + std::to_string(moment.step) + " counts, so its loss is taken as 0");
    UpdatePart nothing = *part;
    nothing.loss = 0;
    return nothing;
  }
  learner_.check_loss(part->loss, moment.step, snapshots_.name_good_state());
  return part;
}

// An interrupted training is saved after the last step of the epoch, and validates the epoch again when it goes on.
void TrainLoop::judge_epoch(EpochRecord& epoch) {
  const EpochVerdict verdict = judge_.judge(epoch, schedule_, learner_.step().batch_step().at_once());
  course_.record.stopped_early = verdict == EpochVerdict::stop_early;
  if (epoch.validation_loss && !std::isfinite(*epoch.validation_loss))
    notices_.add("the validation loss of epoch " + std::to_string(epoch.epoch) +
                 " is no number: the model answers NaN or infinity, or no label of the validation data counts");
  if (verdict != EpochVerdict::interrupted) return;
  course_.record.interrupted = true;
  save_snapshot();
}

void TrainLoop::measure_training_samples() {
  const TrainingMetrics measured = measure_training(learner_.model(), data_, course_.record.steps * feed_.samples(),
                                                    learner_.step().batch_step().at_once(), options_, control_);
  course_.record.training_metrics = measured.metrics;
  if (!measured.notice.empty()) notices_.add(measured.notice);
}

TrainingState TrainLoop::state() {
  return {.tensors = learner_.tensors(),
          .optimizer = learner_.optimizer(),
          .schedule = schedule_,
          .early_stop = judge_.results().early_stop(),
          .average = judge_.results().average(),
          .scaler = learner_.step().batch_step().scaler(),
          .place = course_.place,
          .record = course_.record};
}

// Does nothing if no folder was given, but for giving this rank's state to the rank that saves.
void TrainLoop::save_snapshot() {
  NamedTensors exchanged;
  if (learner_.exchange() != nullptr) exchanged = learner_.exchange()->collect(course_.record.steps);
  if (!snapshots_.is_open()) return;
  learner_.check_weights(course_.record.steps, snapshots_.name_good_state());
  if (const auto failed = snapshots_.save(state(), exchanged, learner_.step().precision())) notices_.add(*failed);
  learner_.weights().release();
}

}  // namespace lissome
