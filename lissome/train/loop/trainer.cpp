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

constexpr int64_t kMostSamplesMeasured = 1000;  // where nothing is validated
constexpr double kSecondsBetweenReads = 0.25;   // of the resident set, which costs as much as a small step

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

std::vector<at::Tensor> drop_names(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

class Trainer {
 public:
  // `model` is fitted to the data (fit_model.h), `validated` takes what is validated.
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
    if (options.early_stop) early_stop_.emplace(drop_names(tensors_), *options.early_stop);
    if (options.average_decay) average_.emplace(drop_names(tensors_), *options.average_decay);
    if (fixed_ && options.batch != 0 && batch_ != options.batch)
      notice("the model has a fixed batch size of " + std::to_string(batch_) +
             ", which is taken; samples that fill no batch are left out of their epoch");
    const int64_t rest = count_samples(data, options.batches) % update_;
    if (!fixed_ && rest > 0 && rest < least_)
      notice("the model takes batches of " + std::to_string(least_) + " samples and more: the last " +
             std::to_string(rest) + " of each epoch fill none and are left out");
    if (const std::optional<StepForecast>& forecast = step_->step().forecast())
      notice(describe_forecast(*forecast, step_->at_once()));
    if (step_->step().streams_weights()) notice(describe_waiting(count_bytes()));
    if (options.batches.pin_memory && !can_pin_memory())
      notice("page-locked memory (--pin-memory) has no effect: it is for copies to a device, and libtorch sees none");
    if (const std::string still = describe_still(model); !still.empty()) notice(still);
    if (!model.training && depends_on_mode(model))
      notice(
          "the model was exported in eval mode: batch norm stays as it is and dropout is absent. Export it in train "
          "mode to train them too: torch.export.export(model.train(), ...)");
  }

  void note_memory() {
    record_.batch = step_->at_once();
    record_.peak_memory = limit_.peak();
  }

  void save_to(SnapshotFolder* snapshots) { snapshots_ = snapshots; }

  // What was measured may be measured again, where steps become slow.
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
      notice("a snapshot is damaged, one before it is taken: " + damaged);
    if (found.path.empty()) {
      notice("there is no snapshot in " + quote(options_.resume) + " yet: training begins at its first step");
      return;
    }
    restore_snapshot(found.snapshot, state());
    weights_.release();
    first_step_ = record_.steps;
    notice("goes on from " + quote(found.path) + ", after step " + std::to_string(record_.steps));
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
    note_memory();  // of steps: what follows is none
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
      weights_.move(find_waiting_weights(with_loss_, options_.update_in_backward), options_.offload);
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

  // Samples of an update.
  int64_t choose_update(const Dataset& data) {
    const int64_t all = count_samples(data, options_.batches);
    if (options_.batch == 0) {
      const std::vector<at::Tensor> samples = take_inputs(data, 0, examples_, with_loss_.inputs.size());
      const int64_t found = step_->find_largest(samples, all);
      notice("batches of " + std::to_string(found) + " samples fit into memory and are taken" +
             std::string(found == all ? ": all there are" : ""));
    }
    if (options_.accumulate > 1 && options_.scale_learning_rate)
      notice("the learning rate is " + std::to_string(options_.accumulate) +
             " times the one asked for, as are the samples of an update");
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
      tell_step(*step);
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
      if (snapshots_ != nullptr) save_snapshot();  // after its last step: who goes on from it judges the epoch again
    }
    record.seconds = seconds_before + watch.seconds();
    record_.epochs.push_back(record);
    if (options_.callbacks.on_epoch) options_.callbacks.on_epoch(record);
    place_ = {.epoch = place_.epoch + 1};
  }

  // Nothing where it was interrupted: then all is as before it.
  std::optional<TrainStepRecord> run_step() {
    const int64_t index = place_.epoch_steps;
    TrainStepRecord step{.epoch = place_.epoch, .step = record_.steps + 1};
    const Stopwatch watch;
    inputs_.clear();  // their memory is the loader's again
    inputs_ = batches_.take(place_.epoch, index);
    step.samples = inputs_.front().size(0);
    step.seconds_data = watch.seconds();
    const RatePoint rate = schedule_.at(record_.steps);
    const StepOptions update = {.lr = rate.learning_rate, .momentum = rate.momentum};
    const std::optional<double> loss = run_gradients(inputs_, update);
    if (!loss) return std::nullopt;
    step.loss = *loss;
    for (; told_ < step_->notes().size(); ++told_) notice(step_->notes()[told_]);
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

  // The rate is the one for all updates of this step. Nothing where it was interrupted, which a step that updates
  // weights while it runs cannot be.
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
      return "No snapshot was saved before it (--snapshot-every).";
    return "The last good state is that of step " + std::to_string(snapshots_->saved_step()) + " in " +
           quote(snapshots_->folder()) + ".";
  }

  [[noreturn]] void refuse_loss(const TrainStepRecord& step, const std::vector<at::Tensor>& inputs) {
    throw_error(ErrorKind::invalid_input, "the loss became ", step.loss, " at step ", step.step,
                "; the first node that made it: ", find_nonfinite_node(step_->step().program(), inputs),
                ". Lower --lr, or look at that batch.\n", name_good_state());
  }

  // The loss of a step is that of the weights before it: what the last step did shows in no loss.
  void refuse_lost_weights() {
    for (const std::string& name : names_) {
      if (holds_only_numbers(step_->step().program().find_weight(name)->tensor)) continue;
      throw_error(ErrorKind::invalid_input, "after step ", record_.steps, " the weight ", quote(name),
                  " holds NaN or infinity, and nothing is written. Lower --lr, or clip gradients (--clip).\n",
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
             " steps ago, and more each time: something is kept from step to step");
    if (options_.callbacks.on_memory) options_.callbacks.on_memory(memory);
  }

  double read_memory() {
    if (memory_ == 0 || watch_.seconds() - memory_read_ > kSecondsBetweenReads) {
      memory_ = static_cast<double>(read_resident_memory().now);
      memory_read_ = watch_.seconds();
    }
    return memory_;
  }

  void tell_step(const TrainStepRecord& step) {
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

  // A source may become slower than it was when its workers were found, and so may the processor.
  void watch_performance(const TrainStepRecord& step) {
    const bool was_starved = monitor_.starved(), was_slow = monitor_.slow();
    for (const std::string& text : monitor_.observe(step)) notice(text);
    if (!was_starved && monitor_.starved() && batches_.tune_anew())
      notice("workers and prefetch are tried anew, what is fastest stays");
    if (!was_slow && monitor_.slow() && !monitor_.starved()) look_for_faster_step();
  }

  // Only what was left open changes: what somebody asked for stays.
  void look_for_faster_step() {
    const bool open_parts = options_.batch == 0 && step_->may_split();
    if (!open_parts && !open_precision_) {
      notice("nothing about a step was left open that could make it faster (batch auto, precision auto)");
      return;
    }
    const auto tell_no_memory = [&](const std::string& why) {
      notice("there is no memory to try another step beside this one: " + why);
    };
    try {
      if (open_parts) notice(choose_parts(*step_, inputs_));
      if (open_precision_) notice(choose_other_precision());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::over_budget) throw;
      tell_no_memory(error.message());
    } catch (const c10::OutOfMemoryError& error) {
      tell_no_memory(error.what_without_backtrace());
    }
  }

  std::string choose_other_precision() {
    const Dtype now = facts_precision() == dtype_name(Dtype::bf16) ? Dtype::bf16 : Dtype::f32;
    const Dtype other = now == Dtype::f32 ? Dtype::bf16 : Dtype::f32;
    std::unique_ptr<BatchStep> rival = make_step(other);
    if (rival->may_split()) rival->set_at_once(step_->at_once());
    const StepRace race = compare_step_times([&] { step_->rehearse(inputs_); }, [&] { rival->rehearse(inputs_); });
    const std::string other_name(dtype_name(other)),
        measured = ": a step in " + other_name + " takes " + race.factor + " as in " + facts_precision();
    if (!race.pays) return facts_precision() + " stays" + measured;
    step_ = std::move(rival);
    told_ = 0;
    facts_precision() = other_name;
    return other_name + " from here on" + measured;
  }

  // Which snapshots name.
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
             " was not saved, training goes on: " + error.message());
    }
    weights_.release();
  }

  // A tenth of what training took, at the most. Not inside of a byte budget, which holds for steps alone.
  void measure_training() {
    if (options_.memory > 0 || options_.batches.source) return;
    Dataset seen = data_;
    const int64_t affordable = std::max(record_.steps * update_ / 10, step_->at_once());
    seen.rows.resize(static_cast<size_t>(std::min({seen.samples(), affordable, kMostSamplesMeasured})));
    std::optional<ValidationResult> result;
    try {
      result = validate(eval_, seen, step_->at_once(), least_validated_, options_.metrics, control_);
    } catch (const Error& error) {  // such as weights with which the model takes a value out of an op's range
      return notice("how well the trained model does on its own samples cannot be told: " + error.message());
    }
    if (!result || result->metrics.empty()) return;
    record_.training_metrics = result->metrics;
    std::vector<std::string> told;
    for (const auto& [name, value] : result->metrics) {
      char number[32];
      std::snprintf(number, sizeof number, "%.4g", value);
      told.push_back(name + " " + (name == "accuracy" ? format_percent(value) : number));
    }
    notice(join(told, ", ") + " on " + std::to_string(seen.samples()) +
           " of the samples that were trained on; --validation judges by others");
  }

  // Validation, with the averages of weights where they are kept. False where it was interrupted.
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

  // Validation and what follows from it. False where it was interrupted: then nothing follows.
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

  OffloadedWeights weights_;   // before all that takes memory: they come back when that has gone
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
  const int64_t least_;  // samples that the model takes at once
  const int64_t batch_, examples_;
  const Program with_loss_;
  const Program eval_;             // for any batch, in eval form, over the same weights
  const int64_t least_validated_;  // samples at once
  std::unique_ptr<BatchStep> step_;
  size_t told_ = 0;  // of its notes
  bool open_precision_ = false;
  const std::vector<std::string> names_;  // of what trains
  const NamedTensors tensors_;
  Optimizer optimizer_;
  std::optional<BackwardUpdate> backward_update_;
  TrainingMemory limit_;
  const int64_t update_;  // samples
  Batches batches_;
  std::vector<at::Tensor> inputs_;  // the last batch
  Schedule schedule_;
  PerformanceMonitor monitor_;
  LeakCheck leak_;
  std::optional<EarlyStop> early_stop_;
  std::optional<MovingAverage> average_;
  TrainingPlace place_;
  int64_t first_step_ = 0;  // of this run
  Stopwatch watch_;
  double memory_ = 0, memory_read_ = 0;
};

// Which all want every gradient before the first update.
void check_update_in_backward(const TrainOptions& options) {
  const auto refuse = [](const char* why, const char* way) {
    throw_error(ErrorKind::usage,
                "weights that are updated in the backward pass change before all gradients are there, ", why,
                ".\n      ", way);
  };
  if (options.clip_norm > 0)
    refuse("so these cannot be clipped to a global norm", "Turn clipping off: --clip 0, or clip_norm = 0");
  if (options.accumulate > 1)
    refuse("so these cannot be summed over several batches", "Give a larger batch in place of --accumulate");
  if (options.precision == Dtype::f16)
    refuse("so a step cannot be left out where the scaled gradients of fp16 overflow",
           "Use bf16, which needs no scale");
}

// f32 or bf16: what the snapshot to go on from was trained in, else what was measured.
PrecisionChoice complete_precision(const FoundSnapshot& found, const Program& model, const Dataset& data,
                                   const Dataset* validation, const TrainOptions& options) {
  for (const auto& [name, text] : found.snapshot.facts) {
    if (name == "precision")
      return {text == dtype_name(Dtype::bf16) ? Dtype::bf16 : Dtype::f32, text + " is taken, as in the snapshot"};
  }
  return choose_precision(model, data, validation, options);
}

// What training begins with, for one fit of the model to the data: the trainer looks into the rest.
struct Start {
  Program fitted;
  TrainOptions options;
  std::optional<PrecisionChoice> precision;
  std::optional<LossyCheck> lossy;
  std::unique_ptr<Trainer> trainer;
};

// All that records gradients, which refuses what it cannot record.
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

// For the widest batches that gradients can be recorded for.
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

// Training draws from libtorch's own generator, from its seed on; whoever else draws from it goes on where they were.
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
    throw_error(
        ErrorKind::invalid_input,
        "training from scratch needs the model in train form: export it with torch.export.export(model.train(), ...)");
  const TorchThreads threads(options.threads);
  const KeptRandomState random;
  FoundSnapshot found;
  if (!options.resume.empty()) found = find_snapshot(options.resume);
  const WeightsInRowOrder weights(model);
  const auto start = start_widest(weights.program(), data, validation, options, found, control);
  Trainer& trainer = *start->trainer;
  at::manual_seed(options.seed);  // recording may have drawn
  malloc_trim(0);  // what recording and planning freed, several times the weights, goes back to the system
  if (start->precision) trainer.leave_precision_open(start->precision->reason);
  if (start->lossy) trainer.notice(start->lossy->told);
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
