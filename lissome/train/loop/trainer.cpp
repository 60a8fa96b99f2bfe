// See trainer.h.
#include "lissome/train/loop/trainer.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "lissome/pass.h"
#include "lissome/train/budget/allocation_meter.h"
#include "lissome/train/budget/choose_parts.h"
#include "lissome/train/budget/choose_precision.h"
#include "lissome/train/budget/compare_step_times.h"
#include "lissome/train/budget/training_bytes.h"
#include "lissome/train/budget/training_facts.h"
#include "lissome/train/loop/training_state.h"
#include "lissome/train/loop/validation.h"
#include "lissome/train/optim/accumulate.h"
#include "lissome/train/optim/nonfinite.h"
#include "lissome/train/optim/schedule.h"
#include "lissome/train/optim/update.h"
#include "lissome/train/remat/check_lossy.h"
#include "lissome/train/remat/offload_weights.h"
#include "lissome/train/rewrite/backward_update.h"
#include "lissome/train/rewrite/freeze.h"
#include "lissome/train/rewrite/mode_dependence.h"
#include "lissome/train/step/batches.h"
#include "lissome/train/step/fit_model.h"
#include "lissome/train/step/labels.h"
#include "lissome/train/step/make_batch_step.h"
#include "lissome/train/step/row_order.h"

namespace lissome {
namespace {

constexpr int64_t kMostSamplesMeasured =
    1000;  // training samples that metrics are measured on, if there is no validation data
constexpr double kSecondsBetweenReads = 0.25;  // of the resident set; a read costs as much as a small step

Program make_eval_form(Program program) {
  convert_to_inference(program);
  return program;
}

double choose_learning_rate(const TrainOptions& options) {
  const double own = std::visit([](const auto& kind) { return kind.lr; }, options.optimizer);
  const auto factor = options.scale_learning_rate ? static_cast<double>(options.accumulate) : 1.0;
  return options.learning_rate.value_or(own) * factor;
}

int64_t start_metering() {
  meter_allocations();
  return allocator_memory().live();
}

// Weights and running statistics, each storage once, under the first of its names.
NamedTensors list_tensors(const Program& program) {
  NamedTensors tensors;
  std::unordered_set<const void*> seen;
  for (const Weight& weight : program.weights) {
    const bool trained = weight.role != WeightRole::constant && weight.tensor.numel() > 0;
    if (trained && seen.insert(weight.tensor.const_data_ptr()).second) tensors.emplace_back(weight.name, weight.tensor);
  }
  return tensors;
}

std::vector<Parameter> list_parameters(const TrainingStep& step) {
  std::vector<Parameter> parameters;
  for (const std::string& name : step.names())
    parameters.push_back({name, step.program().find_weight(name)->tensor, {}});
  return parameters;
}

std::vector<at::Tensor> list_without_names(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

class Trainer {
 public:
  // `model` is fitted to the data (fit_model.h); `validated` takes the validation data.
  Trainer(const Program& model, const Program& validated, const Dataset& data, const Dataset* validation,
          const TrainOptions& options, TrainingFacts facts, const WorkControl& control)
      : live_before_(start_metering()),
        model_(model),
        data_(data),
        validation_(validation),
        options_(options),
        control_(control),
        facts_(std::move(facts)),
        fixed_(find_fixed_batch(model).has_value()),
        least_(find_least_batch(model)),
        batch_(choose_batch(model, data, options.batches, options.batch)),
        examples_(choose_examples(model, batch_)),
        with_loss_(freeze_parameters(attach_checked_loss(model, data, validation, options, examples_), options.groups)),
        eval_(make_eval_form(attach_checked_loss(validated, data, validation, options, examples_))),
        least_validated_(find_fixed_batch(validated).value_or(find_least_batch(validated))),
        step_(make_step(options.precision.value())),
        names_(step_->step().names()),
        tensors_(list_tensors(step_->step().program())),
        optimizer_(list_parameters(step_->step()), options.optimizer, list_training_groups(options.groups),
                   options.offload),
        backward_update_(make_backward_update()),
        limit_(model, live_before_ - weights_.metered(), options.memory, options.batch == 0, weights_.saved()),
        update_(choose_update(data)),
        batches_(data, update_, fixed_ ? update_ : least_, with_loss_.inputs.size(), options.seed, options.batches),
        schedule_(
            parse_schedule(options.schedule, {choose_learning_rate(options), total_steps(), batches_.per_epoch()})),
        monitor_(options.monitor) {
    if (options.early_stop) early_stop_.emplace(list_without_names(tensors_), *options.early_stop);
    if (options.average_decay) average_.emplace(list_without_names(tensors_), *options.average_decay);
    if (fixed_ && options.batch != 0 && batch_ != options.batch)
      notice("the model has a fixed batch size of " + std::to_string(batch_) +
             ", so batches have this size; samples that do not fill a batch are left out of their epoch");
    const int64_t rest = count_samples(data, options.batches) % update_;
    if (!fixed_ && rest > 0 && rest < least_)
      notice("the model takes batches of " + std::to_string(least_) + " samples or more, so the last " +
             std::to_string(rest) + " of each epoch are left out");
    if (const std::optional<StepForecast>& forecast = step_->step().forecast())
      notice(describe_forecast(*forecast, step_->at_once()));
    if (step_->step().streams_weights()) notice(describe_offloaded(count_bytes()));
    if (options.batches.pin_memory && !can_pin_memory())
      notice("--pin-memory has no effect: page-locked memory is for copies to a device, and libtorch finds no device");
    if (const std::string still = describe_still(model); !still.empty()) notice(still);
    if (!model.training && depends_on_mode(model))
      notice(
          "the model was exported in eval mode, so its batch norm does not change and its dropout is absent. Export it "
          "in train "
          "mode to train with them: torch.export.export(model.train(), ...)");
  }

  void note_memory() {
    record_.batch = step_->at_once();
    record_.peak_memory = limit_.peak();
  }

  void save_to(SnapshotFolder* snapshots) { snapshots_ = snapshots; }

  // The precision may be measured again if steps become slow.
  void leave_precision_open(const std::string& reason) {
    open_precision_ = true;
    notice(reason);
  }

  void notice(const std::string& text) {
    record_.notes.push_back(text);
    if (options_.callbacks.on_notice) options_.callbacks.on_notice(text);
  }

  void resume(const FoundSnapshot& found) {
    for (const std::string& damaged : found.damaged)
      notice("a snapshot is damaged, so an older one is loaded: " + damaged);
    if (found.path.empty()) {
      notice("there is no snapshot in " + quote(options_.resume) + " yet, so training begins at its first step");
      return;
    }
    restore_snapshot(found.snapshot, state());
    weights_.release();
    first_step_ = record_.steps;
    notice("training continues from " + quote(found.path) + ", after step " + std::to_string(record_.steps));
  }

  TrainRecord run() {
    while (place_.epoch <= options_.epochs && !record_.interrupted && !record_.stopped_early && !is_last_step())
      run_epoch();
    if (early_stop_) {
      early_stop_->restore_best();
    } else if (average_) {
      average_->swap();
    }
    refuse_lost_weights();
    note_memory();  // of steps, without the measurements below
    if (validation_ == nullptr && !record_.interrupted) measure_training();
    return std::move(record_);
  }

 private:
  std::unique_ptr<BatchStep> make_step(Dtype precision) {
    TrainOptions options = options_;
    options.precision = precision;
    auto step = std::make_unique<BatchStep>(make_batch_step(model_, with_loss_, data_, options, batch_, examples_));
    if (options_.callbacks.on_passes) options_.callbacks.on_passes(step->step().passes());
    if (step->step().streams_weights())
      weights_.move(find_offloadable_weights(with_loss_, options_.update_in_backward), options_.offload);
    return step;
  }

  TrainingBytes count_bytes() {
    const WeightPlace place = step_->step().streams_weights() ? WeightPlace::file : WeightPlace::memory;
    return count_training_bytes(with_loss_, options_, place);
  }

  std::optional<BackwardUpdate> make_backward_update() {
    if (!options_.update_in_backward) return std::nullopt;
    return BackwardUpdate(optimizer_, names_, options_.gradient_hooks);
  }

  // Returns the number of samples of an update.
  int64_t choose_update(const Dataset& data) {
    const int64_t all = count_samples(data, options_.batches);
    if (options_.batch == 0) {
      const std::vector<at::Tensor> samples = take_inputs(data, 0, examples_, with_loss_.inputs.size());
      const int64_t found = step_->find_largest(samples, all);
      notice("batches of " + std::to_string(found) + " samples fit into memory, so batches have this size" +
             std::string(found == all ? " (all samples)" : ""));
    }
    if (options_.accumulate > 1 && options_.scale_learning_rate)
      notice("the learning rate is multiplied by --accumulate, " + std::to_string(options_.accumulate) +
             ", because an update sees so many batches");
    const int64_t usable = fixed_ ? all / batch_ * batch_ : all;
    const int64_t asked = options_.batch == 0 ? step_->at_once() : batch_;
    return std::min(asked * options_.accumulate, usable);
  }

  int64_t total_steps() const {
    const int64_t all = options_.epochs * batches_.per_epoch();
    return std::min(options_.max_steps.value_or(all), all);
  }
  bool is_last_step() const { return options_.max_steps && record_.steps >= *options_.max_steps; }

  TrainingState state() {
    return {.tensors = tensors_,
            .optimizer = optimizer_,
            .schedule = schedule_,
            .early_stop = early_stop_ ? &*early_stop_ : nullptr,
            .average = average_ ? &*average_ : nullptr,
            .scaler = step_->scaler(),
            .place = place_,
            .record = record_};
  }

  void run_epoch() {
    const Stopwatch watch;
    const double seconds_before = place_.seconds;
    while (place_.epoch_steps < batches_.per_epoch() && !record_.interrupted && !is_last_step()) {
      const std::optional<TrainStepRecord> step = run_step();
      place_.seconds = seconds_before + watch.seconds();
      if (!step) {
        record_.interrupted = true;
        if (snapshots_ != nullptr && record_.steps > first_step_) save_snapshot();
        break;
      }
      place_.learning_rate = step->learning_rate;
      report_step(*step);
      if (options_.memory_every > 0 && (record_.places.empty() || record_.steps % options_.memory_every == 0))
        look_at_memory();
      for (const std::string& text : batches_.list_new_bad_samples()) notice(text);
      if (const std::optional<std::string> settled = batches_.tune()) notice(*settled);
      record_.interrupted = control_.stopped();
      if (snapshots_ != nullptr && (record_.interrupted || snapshots_->is_due(record_.steps))) save_snapshot();
    }
    EpochRecord record{.epoch = place_.epoch,
                       .step = record_.steps,
                       .loss = place_.losses / static_cast<double>(std::max<int64_t>(place_.samples, 1)),
                       .learning_rate = place_.learning_rate,
                       .validation_loss = {},
                       .validation_metrics = {}};
    if (!record_.interrupted && !judge_epoch(record)) {
      record_.interrupted = true;
      if (snapshots_ != nullptr)
        save_snapshot();  // after the last step of the epoch; a resumed training validates the epoch again
    }
    record.seconds = seconds_before + watch.seconds();
    record_.epochs.push_back(record);
    if (options_.callbacks.on_epoch) options_.callbacks.on_epoch(record);
    place_ = {.epoch = place_.epoch + 1};
  }

  // Empty if it was interrupted; everything is then as before the step.
  std::optional<TrainStepRecord> run_step() {
    const int64_t index = place_.epoch_steps;
    TrainStepRecord step{.epoch = place_.epoch, .step = record_.steps + 1};
    const Stopwatch watch;
    inputs_.clear();  // the loader reuses their memory
    inputs_ = batches_.take(place_.epoch, index);
    step.samples = inputs_.front().size(0);
    step.seconds_data = watch.seconds();
    const RatePoint rate = schedule_.at(record_.steps);
    const StepOptions update = {.lr = rate.learning_rate, .momentum = rate.momentum};
    const std::optional<double> loss = run_gradients(inputs_, update);
    if (!loss) return std::nullopt;
    step.loss = *loss;
    for (; reported_ < step_->notes().size(); ++reported_) notice(step_->notes()[reported_]);
    if (!std::isfinite(step.loss)) refuse_loss(step, step_->last_inputs());
    step.seconds_gradients = watch.seconds() - step.seconds_data;
    const StepResult result = update_weights(update);
    step.seconds_update = watch.seconds() - step.seconds_data - step.seconds_gradients;
    if (backward_update_) {
      step.seconds_update += backward_update_->seconds();
      step.seconds_gradients -= backward_update_->seconds();
    }
    step_->note_update(result.skipped);
    if (average_ && !result.skipped) average_->update();
    step.learning_rate = rate.learning_rate;
    step.gradient_norm = result.gradient_norm;
    step.skipped = result.skipped;
    step.memory = read_memory();
    place_.losses += step.loss * static_cast<double>(step.samples);
    place_.samples += step.samples;
    ++place_.epoch_steps;
    record_.skipped_steps += step.skipped ? 1 : 0;
    ++record_.steps;
    return step;
  }

  // `options` are those of all updates of this step. Empty if it was interrupted; a step that updates weights while it
  // runs cannot be.
  std::optional<double> run_gradients(const std::vector<at::Tensor>& inputs, const StepOptions& options) {
    if (!backward_update_) return run_until_stopped(inputs);
    backward_update_->begin(options);
    const GradientTaker taker = [&](size_t index, const at::Tensor& gradient) {
      backward_update_->take(index, gradient);
    };
    return step_->run(inputs, &taker);
  }

  std::optional<double> run_until_stopped(const std::vector<at::Tensor>& inputs) {
    step_->step().session().stop_runs(control_.should_stop);
    std::optional<double> loss;
    try {
      loss = step_->run(inputs);
    } catch (const RunInterrupted&) {
    }
    step_->step().session().stop_runs({});
    return loss;
  }

  StepResult update_weights(StepOptions options) {
    if (backward_update_) return backward_update_->finish(name_good_state());
    std::vector<at::Tensor> gradients = step_->gradients();
    if (options_.gradient_hooks != nullptr) options_.gradient_hooks->apply(names_, gradients);
    options.clip_norm = options_.clip_norm;
    options.loss_scale = step_->loss_scale();
    return optimizer_.step(gradients, options);
  }

  std::string name_good_state() const {
    if (snapshots_ == nullptr || snapshots_->saved_step() == 0)
      return "No snapshot was saved before it (see --snapshot-every).";
    return "The last good state is that of step " + std::to_string(snapshots_->saved_step()) + " in " +
           quote(snapshots_->folder()) + ".";
  }

  [[noreturn]] void refuse_loss(const TrainStepRecord& step, const std::vector<at::Tensor>& inputs) {
    throw_error(
        ErrorKind::invalid_input, "the loss became ", step.loss, " at step ", step.step,
        ". The first node that computes NaN or infinity: ", find_nonfinite_node(step_->step().program(), inputs),
        ". Lower --lr, or check the samples of that batch.\n", name_good_state());
  }

  // Checks weights after the last step. The loss of a step belongs to the weights before it, so it cannot show an error
  // of the last update.
  void refuse_lost_weights() {
    for (const std::string& name : names_) {
      if (is_all_finite(step_->step().program().find_weight(name)->tensor)) continue;
      throw_error(ErrorKind::invalid_input, "after step ", record_.steps, " the weight ", quote(name),
                  " holds NaN or infinity, so nothing is written. Lower --lr, or clip gradients (--clip).\n",
                  name_good_state());
    }
  }

  void look_at_memory() {
    TrainingStep& step = step_->step();
    const std::vector<at::Tensor>& inputs = step_->last_inputs();
    const MemoryTimeline timeline = step.trace_arena(inputs);
    const TrainingBytes bytes = count_bytes();
    const ResidentMemory resident = read_resident_memory();
    MemoryRecord memory{.step = record_.steps,
                        .weights = bytes.weights,
                        .gradients = bytes.gradients,
                        .states = bytes.states,
                        .batch = 0,
                        .reserved = timeline.reserved,
                        .allocated = allocator_memory().live() - live_before_,
                        .resident = resident.now,
                        .resident_peak = resident.peak};
    for (const at::Tensor& input : inputs) memory.batch += static_cast<int64_t>(input.nbytes());
    if (timeline.peak_step >= 0) {
      memory.activations = timeline.values[static_cast<size_t>(timeline.peak_step)];
      memory.scratch = timeline.scratch[static_cast<size_t>(timeline.peak_step)];
    }
    if (record_.places.empty()) {
      record_.places = list_memory_places(step.session().plan(), timeline);
      for (int i = 0; i < static_cast<int>(timeline.values.size()); ++i)
        record_.step_memory.push_back(timeline.total(i));
    }
    if (leak_.observe(memory.allocated))
      notice("allocators hold " + format_bytes(leak_.growth()) + " more than " +
             std::to_string(5 * options_.memory_every) +
             " steps ago, and the memory grows each time: something keeps memory from step to step");
    if (options_.callbacks.on_memory) options_.callbacks.on_memory(memory);
  }

  double read_memory() {
    if (memory_ == 0 || watch_.seconds() - memory_read_ > kSecondsBetweenReads) {
      memory_ = static_cast<double>(read_resident_memory().now);
      memory_read_ = watch_.seconds();
    }
    return memory_;
  }

  void report_step(const TrainStepRecord& step) {
    add_step(record_.history, step);
    if (options_.callbacks.on_step) options_.callbacks.on_step(step);
    watch_performance(step);
    const double all = static_cast<double>(total_steps());
    const double here = static_cast<double>(record_.steps - first_step_);
    const double done = static_cast<double>(record_.steps) / all;
    char message[200];
    std::snprintf(message, sizeof message,
                  "epoch %lld of %lld, step %lld of %lld, loss %.4f, rate %.2g, %.0f samples/s",
                  static_cast<long long>(step.epoch), static_cast<long long>(options_.epochs),
                  static_cast<long long>(place_.epoch_steps), static_cast<long long>(batches_.per_epoch()),
                  place_.losses / static_cast<double>(place_.samples), step.learning_rate,
                  here * static_cast<double>(update_) / watch_.seconds());
    control_.report({"training", std::string(message) + ", " + format_bytes(static_cast<int64_t>(step.memory)), done,
                     watch_.seconds() / here * (all - static_cast<double>(record_.steps))});
  }

  // A source may become slower than when its workers were chosen, and so may the processor.
  void watch_performance(const TrainStepRecord& step) {
    const bool was_starved = monitor_.starved(), was_slow = monitor_.slow();
    for (const std::string& text : monitor_.observe(step)) notice(text);
    if (!was_starved && monitor_.starved() && batches_.tune_anew())
      notice("workers and prefetch are tried anew, and the fastest setting is kept");
    if (!was_slow && monitor_.slow() && !monitor_.starved()) look_for_faster_step();
  }

  // Only automatic settings change; settings that the user gave stay.
  void look_for_faster_step() {
    const bool open_parts = options_.batch == 0 && step_->may_split();
    if (!open_parts && !open_precision_) {
      notice(
          "no setting of a step is automatic (--batch auto, --precision auto), so nothing is tried to make it faster");
      return;
    }
    const auto report_no_memory = [&](const std::string& why) {
      notice("there is not enough memory to try another step beside this one: " + why);
    };
    try {
      if (open_parts) notice(choose_parts(*step_, inputs_));
      if (open_precision_) notice(choose_other_precision());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::over_budget) throw;
      report_no_memory(error.message());
    } catch (const c10::OutOfMemoryError& error) {
      report_no_memory(error.what_without_backtrace());
    }
  }

  std::string choose_other_precision() {
    const Dtype now = facts_precision() == dtype_name(Dtype::bf16) ? Dtype::bf16 : Dtype::f32;
    const Dtype other = now == Dtype::f32 ? Dtype::bf16 : Dtype::f32;
    std::unique_ptr<BatchStep> candidate = make_step(other);
    if (candidate->may_split()) candidate->set_at_once(step_->at_once());
    const StepComparison compared =
        compare_step_times([&] { step_->rehearse(inputs_); }, [&] { candidate->rehearse(inputs_); });
    const std::string other_name(dtype_name(other)),
        measured = ": a step in " + other_name + " takes " + compared.factor + " as in " + facts_precision();
    if (!compared.pays) return "the precision stays " + facts_precision() + measured;
    step_ = std::move(candidate);
    reported_ = 0;
    facts_precision() = other_name;
    return "the precision is " + other_name + " from now on" + measured;
  }

  // The precision that snapshots name.
  std::string& facts_precision() {
    const auto found =
        std::find_if(facts_.begin(), facts_.end(), [](const auto& fact) { return fact.first == "precision"; });
    LISSOME_CHECK(found != facts_.end(), "no precision among the facts");
    return found->second;
  }

  void save_snapshot() {
    refuse_lost_weights();
    try {
      snapshots_->save(record_.steps, make_snapshot(state(), facts_));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io) throw;
      notice("the snapshot of step " + std::to_string(record_.steps) +
             " was not saved, and training continues: " + error.message());
    }
    weights_.release();
  }

  // Measures metrics on training samples, in at most a tenth of the training time. Skipped with a memory budget, which
  // holds for steps alone.
  void measure_training() {
    if (options_.memory > 0 || options_.batches.source) return;
    Dataset seen = data_;
    const int64_t affordable = std::max(record_.steps * update_ / 10, step_->at_once());
    seen.rows.resize(static_cast<size_t>(std::min({seen.samples(), affordable, kMostSamplesMeasured})));
    std::optional<ValidationResult> result;
    try {
      result = validate(eval_, seen, step_->at_once(), least_validated_, options_.metrics, control_);
    } catch (const Error& error) {  // for example weights for which a value leaves the range of an op
      return notice("the metrics of the trained model on its training samples cannot be measured: " + error.message());
    }
    if (!result || result->metrics.empty()) return;
    record_.training_metrics = result->metrics;
    std::vector<std::string> metrics;
    for (const auto& [name, value] : result->metrics) {
      char number[32];
      std::snprintf(number, sizeof number, "%.4g", value);
      metrics.push_back(name + " " + (name == "accuracy" ? format_percent(value) : number));
    }
    notice(join(metrics, ", ") + " on " + std::to_string(seen.samples()) +
           " of the training samples; use --validation to measure on other samples");
  }

  // Validates, with the averages of weights if there are any. Returns false if it was interrupted.
  bool validate_epoch(EpochRecord& record) {
    if (validation_ == nullptr) return true;
    if (average_) average_->swap();
    const auto result = validate(eval_, *validation_, step_->at_once(), least_validated_, options_.metrics, control_);
    if (result) {
      record.validation_loss = result->loss;
      record.validation_metrics = result->metrics;
    }
    weights_.release();
    if (average_) average_->swap();
    return result || !control_.stopped();
  }

  // Validates and updates schedule and early stopping. Returns false if it was interrupted, and then updates nothing.
  bool judge_epoch(EpochRecord& record) {
    if (!validate_epoch(record)) return false;
    if (average_) average_->swap();  // early stopping keeps the best averages
    const double metric = record.validation_loss.value_or(record.loss);
    schedule_.observe(metric);
    if (early_stop_) {
      early_stop_->observe(metric);
      record_.stopped_early = early_stop_->should_stop();
    }
    if (average_) average_->swap();
    return true;
  }

  OffloadedWeights weights_;   // first member: weights move back when all other memory is free
  const int64_t live_before_;  // bytes
  const Program& model_;
  const Dataset& data_;
  const Dataset* validation_;
  const TrainOptions& options_;
  const WorkControl& control_;
  SnapshotFolder* snapshots_ = nullptr;  // null: none
  TrainingFacts facts_;
  TrainRecord record_;
  const bool fixed_;
  const int64_t least_;  // fewest samples that the model takes at once
  const int64_t batch_, examples_;
  const Program with_loss_;
  const Program eval_;             // for any batch, in eval form, with the same weights
  const int64_t least_validated_;  // fewest samples at once
  std::unique_ptr<BatchStep> step_;
  size_t reported_ = 0;  // notes of step_
  bool open_precision_ = false;
  const std::vector<std::string> names_;  // of the trained parameters
  const NamedTensors tensors_;
  Optimizer optimizer_;
  std::optional<BackwardUpdate> backward_update_;
  TrainingMemory limit_;
  const int64_t update_;  // samples of an update
  Batches batches_;
  std::vector<at::Tensor> inputs_;  // the last batch
  Schedule schedule_;
  PerformanceMonitor monitor_;
  LeakCheck leak_;
  std::optional<EarlyStop> early_stop_;
  std::optional<MovingAverage> average_;
  TrainingPlace place_;
  int64_t first_step_ = 0;  // first step of this run
  Stopwatch watch_;
  double memory_ = 0, memory_read_ = 0;
};

// Refuses options that need every gradient before the first update.
void check_update_in_backward(const TrainOptions& options) {
  const auto refuse = [](const char* why, const char* way) {
    throw_error(ErrorKind::usage, "updates in the backward pass change weights before all gradients are computed, ",
                why, ".\n      ", way);
  };
  if (options.clip_norm > 0)
    refuse("so gradients cannot be clipped to a global norm", "Turn clipping off: --clip 0, or clip_norm = 0");
  if (options.accumulate > 1)
    refuse("so gradients cannot be summed over several batches", "Give a larger batch in place of --accumulate");
  if (options.precision == Dtype::f16)
    refuse("so a step cannot be skipped when the scaled gradients of fp16 overflow", "Use bf16, which needs no scale");
}

// Chooses f32 or bf16: the precision of the snapshot to continue from, else the faster one by measurement.
PrecisionChoice complete_precision(const FoundSnapshot& found, const Program& model, const Dataset& data,
                                   const Dataset* validation, const TrainOptions& options) {
  for (const auto& [name, text] : found.snapshot.facts) {
    if (name == "precision")
      return {text == dtype_name(Dtype::bf16) ? Dtype::bf16 : Dtype::f32,
              "the precision is " + text + ", as in the snapshot"};
  }
  return choose_precision(model, data, validation, options);
}

// The parts of a training for one fit of the model to the data. The trainer refers to the other members.
struct Start {
  Program fitted;
  TrainOptions options;
  std::optional<PrecisionChoice> precision;
  std::optional<LossyCheck> lossy;
  std::unique_ptr<Trainer> trainer;
};

// Makes everything that records gradients. Throws for models whose gradients cannot be recorded.
std::unique_ptr<Start> start_training(const Program& model, Program fitted, const Program& validated,
                                      const Dataset& data, const Dataset* validation, const TrainOptions& asked,
                                      const FoundSnapshot& found, const WorkControl& control) {
  auto start = std::make_unique<Start>(Start{std::move(fitted), asked, {}, {}, nullptr});
  TrainOptions& options = start->options;
  if (!options.precision) {
    start->precision = complete_precision(found, start->fitted, data, validation, options);
    options.precision = start->precision->precision;
  }
  const TrainingFacts facts = list_facts(model, data, options);
  if (options.lossy_activations) {
    start->lossy = check_lossy(start->fitted, data, validation, options);
    options.lossy_activations = start->lossy->allowed;
  }
  refuse_other_training(found, facts);
  if (options.snapshots && options.resume != options.snapshots->folder) refuse_used_folder(options.snapshots->folder);
  at::manual_seed(options.seed);
  if (options.initialize) initialize_weights(model, *options.initialize);
  start->trainer = std::make_unique<Trainer>(start->fitted, validated, data, validation, options, facts, control);
  return start;
}

// Starts with the widest range of batches for which gradients can be recorded.
std::unique_ptr<Start> start_widest(const Program& model, const Dataset& data, const Dataset* validation,
                                    const TrainOptions& options, const FoundSnapshot& found,
                                    const WorkControl& control) {
  const Program validated = *fit_model(model, data, validation, BatchFit::any, 0);
  const int64_t batch = choose_batch(validated, data, options.batches, options.batch);
  std::unique_ptr<Start> start;
  fit_widest(model, data, validation, batch, [&](Program fitted, const std::string& notice) {
    start = start_training(model, std::move(fitted), validated, data, validation, options, found, control);
    if (!notice.empty()) start->trainer->notice(notice);
  });
  return start;
}

// Restores the state of libtorch's generator, which training seeds and draws from.
class KeptRandomState {
 public:
  KeptRandomState() : generator_(at::globalContext().defaultGenerator(at::kCPU)), state_(generator_.get_state()) {}
  ~KeptRandomState() { generator_.set_state(state_); }
  KeptRandomState(const KeptRandomState&) = delete;
  KeptRandomState& operator=(const KeptRandomState&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace

Trained train(const Program& model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
              const WorkControl& control) {
  if (options.update_in_backward) check_update_in_backward(options);
  check_offload_folder(options.offload);
  if (options.initialize && !model.training)
    throw_error(ErrorKind::invalid_input,
                "training from scratch (--init) needs a model in train form; export it with "
                "torch.export.export(model.train(), ...)");
  const TorchThreads threads(options.threads);
  const KeptRandomState random;
  FoundSnapshot found;
  if (!options.resume.empty()) found = find_snapshot(options.resume);
  const WeightsInRowOrder weights(model);
  const auto start = start_widest(weights.program(), data, validation, options, found, control);
  Trainer& trainer = *start->trainer;
  at::manual_seed(options.seed);  // recording may have drawn random numbers
  malloc_trim(0);                 // returns to the system what recording and planning freed, several times the weights
  if (start->precision) trainer.leave_precision_open(start->precision->reason);
  if (start->lossy) trainer.notice(start->lossy->report);
  if (!options.resume.empty()) trainer.resume(found);
  std::optional<SnapshotFolder> snapshots;
  if (options.snapshots) trainer.save_to(&snapshots.emplace(*options.snapshots));
  Trained trained;
  try {
    trained.record = trainer.run();
  } catch (const c10::OutOfMemoryError& error) {
    throw_error(ErrorKind::over_budget, "training: ", error.what_without_backtrace());
  }
  weights.copy_back();
  trained.program = make_eval_form(model);
  return trained;
}

}  // namespace lissome
