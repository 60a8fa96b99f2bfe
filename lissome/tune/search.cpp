#include "lissome/tune/search.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lissome/pass.h"
#include "lissome/tune/record.h"

namespace lissome {
namespace {

constexpr int kExpectedSteps = 10;         // for the time left, until the search knows better
constexpr int64_t kQualityBatch = 32;      // samples a run when judging quality
constexpr int64_t kMostCalibration = 512;  // samples
constexpr int64_t kCalibrationBatch = 16;

Metric choose_metric(const Dataset* data, const std::optional<Metric>& wanted) {
  if (wanted) return *wanted;
  const bool classes =
      data != nullptr && data->labels && data->labels->dtype == Dtype::i64 && data->labels->sizes.size() == 1;
  return classes ? Metric::top1 : Metric::cosine;
}

LowerOptions reference_lowering(const OptimizeOptions& options) {
  LowerOptions lowering;
  lowering.effort = Effort::fast;
  lowering.forced = {{"*", "reference"}};
  lowering.threads = options.threads;
  return lowering;
}

// The batch size that the model insists on, 0 when it takes any.
int64_t find_fixed_batch(const std::vector<DataSignature>& inputs) {
  return inputs.empty() || inputs.front().sizes.empty() ? 0 : std::max<int64_t>(inputs.front().sizes.front(), 0);
}

std::string format_loss(double loss, double allowed) {
  char text[96];
  std::snprintf(text, sizeof text, "loses %.4g, %.4g is allowed", loss, allowed);
  return text;
}

}  // namespace

Prepared prepare(const Program& original, const std::vector<std::string>& disabled_passes) {
  PipelineOptions options;
  options.disabled = disabled_passes;
  std::vector<PassResult> results;
  Prepared prepared{std::make_shared<const Program>(prepare_inference(original, options, &results)), {}};
  for (const PassResult& result : results) {
    if (result.rewrites > 0)
      prepared.notes.push_back(result.name + ": " + std::to_string(result.rewrites) + " rewrites");
  }
  return prepared;
}

Search::Search(const Program& original, const Dataset* data, const OptimizeOptions& options, const WorkControl& control)
    : options_(options), control_(control), signature_(describe_inputs(original)) {
  record_.model = options.model_name;
  record_.command = options.command;
  record_.seed = options.seed;
  record_.batch = options.batch;
  record_.machine = processor_name() + ", " + std::to_string(usable_threads()) + " threads, " + describe_features();
  set_up_data(data);
  original_ = make_variant("original", std::make_shared<const Program>(original), reference_lowering(options), bench_);
  best_ = original_;
  tell_so_far(true);  // before the first progress: who sees that is promised a best so far
  report("basic", "measuring the original");
  const Metric metric = choose_metric(data, options.metric);
  record_.metric = std::string(metric_name(metric));
  if (split_) {
    const Dataset& held_out = split_->validation;
    OutputRows outputs = collect_outputs(*original_->session, held_out, kQualityBatch, control);
    if (control.stopped()) return;  // not of all samples: nothing to judge by, and nothing will be tried
    judge_.emplace(metric, held_out, std::move(outputs));
    original_->quality = judge_->original();
    record_.data_note =
        judge_->describe() + "; " + std::to_string(split_->calibration.samples()) + " other samples calibrate";
  } else {
    record_.data_note = "no data: inputs are generated and only exact steps are tried";
  }
}

void Search::set_up_data(const Dataset* data) {
  if (data != nullptr) {
    const Dataset fitted = fit_dataset(*data, signature_);
    SplitOptions split;
    split.seed = options_.seed;
    split.calibration = 0.25;
    split.most_calibration = kMostCalibration;
    split_ = split_dataset(fitted, split);
    Dataset one_call = split_->validation;
    const int64_t available = one_call.samples();
    for (int64_t i = 0; one_call.samples() < options_.batch; ++i) {
      one_call.rows.push_back(one_call.rows[static_cast<size_t>(i % available)]);
    }
    bench_.inputs = take_batch(one_call, 0, options_.batch);
  } else {
    GenerateOptions generate;
    generate.batch = options_.batch;
    generate.seed = options_.seed;
    bench_.inputs = generate_inputs(signature_, generate);
  }
  for (const NamedArray& input : bench_.inputs) bench_.views.push_back(input.array.view());
}

const Prepared& Search::fused() {
  if (!fused_) fused_ = prepare(*original_->program, {});
  return *fused_;
}

std::vector<std::vector<c10::IValue>> Search::calibration_batches() const {
  std::vector<std::vector<c10::IValue>> batches;
  Dataset data = split_->calibration;
  const int64_t fixed = find_fixed_batch(signature_);
  const int64_t step = fixed > 0 ? fixed : kCalibrationBatch;
  // Surplus places of the last fixed batch take the first samples again.
  for (size_t i = 0; fixed > 0 && data.samples() % fixed != 0; ++i) data.rows.push_back(data.rows.at(i));
  for (int64_t first = 0; first < data.samples(); first += step) {
    const std::vector<NamedArray> arrays = take_batch(data, first, std::min(step, data.samples() - first));
    std::vector<c10::IValue> values;
    // The batch outlives the arrays it was taken from.
    for (c10::IValue& value : to_ivalues(arrays)) values.emplace_back(value.toTensor().clone());
    batches.push_back(std::move(values));
  }
  return batches;
}

void Search::report(const std::string& stage, const std::string& message) {
  Progress progress;
  progress.stage = stage;
  progress.message = message;
  const int expected = std::max(kExpectedSteps, tried_ + 1);
  progress.fraction = static_cast<double>(tried_) / expected;
  if (tried_ > 0) progress.seconds_left = spent_seconds() / tried_ * (expected - tried_);
  control_.report(progress);
}

bool Search::judge_quality(Variant& variant, StepRecord& step) {
  last_loss_.reset();
  if (!judge_) return true;
  variant.quality = judge_->measure(collect_outputs(*variant.session, split_->validation, kQualityBatch, control_));
  step.quality_before = best_->quality;
  step.quality_after = variant.quality;
  const double loss = judge_->loss(*variant.quality);
  if (control_.stopped()) {
    step.reason = "interrupted before its quality was known";
    return false;
  }
  if (loss <= options_.goal.max_loss) return true;
  last_loss_ = loss;
  step.reason = format_loss(loss, options_.goal.max_loss) + " (would be " + step.reason + ")";
  return false;
}

bool Search::try_step(const std::string& stage, const std::string& name, bool lossy,
                      const std::function<Proposal()>& propose) {
  last_loss_.reset();
  if (out_of_time()) {
    skip_step(stage, name, control_.stopped() ? "interrupted" : "no time left");
    return false;
  }
  report(stage, name);
  const Stopwatch watch;
  const Span span("step." + name, stage);
  StepRecord step;
  step.stage = stage;
  step.name = name;
  std::shared_ptr<Variant> variant;
  try {
    Proposal proposal = propose();
    step.notes = std::move(proposal.notes);
    proposal.lowering.should_stop = control_.should_stop;
    if (stop_step(stage, name)) return false;
    variant = make_variant(name, std::move(proposal.program), proposal.lowering, bench_);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    skip_step(stage, name, "not possible here: " + error.message());
    return false;
  }
  if (stop_step(stage, name)) return false;
  GateOptions gate{options_.goal.memory, options_.seed, control_.should_stop};
  const Verdict verdict = judge_speed(*best_, *variant, bench_, gate);
  if (stop_step(stage, name)) return false;  // a comparison that was cut short proves nothing
  step.reason = verdict.reason;
  step.seconds_before = verdict.seconds_before;
  step.seconds_after = verdict.seconds_after;
  step.ratio = verdict.ratio;
  step.memory_before = verdict.memory_before;
  step.memory_after = verdict.memory_after;
  step.size_before = count_weight_bytes(*best_);
  step.size_after = count_weight_bytes(*variant);
  step.accepted = verdict.accepted && judge_quality(*variant, step);
  if (!lossy && verdict.accepted && !step.accepted && last_loss_)
    step.notes.push_back("an exact step must not lose: rounding on this data");
  step.spent_seconds = watch.seconds();
  ++tried_;
  if (step.accepted) {
    keep_step(*best_, *variant);
    best_ = std::move(variant);
  }
  record_.steps.push_back(step);
  tell_so_far(step.accepted);
  return step.accepted;
}

bool Search::stop_step(const std::string& stage, const std::string& name) {
  if (!control_.stopped()) return false;
  skip_step(stage, name, "interrupted");
  return true;
}

void Search::skip_step(const std::string& stage, const std::string& name, const std::string& reason) {
  StepRecord step;
  step.stage = stage;
  step.name = name;
  step.reason = reason;
  record_.steps.push_back(std::move(step));
}

void Search::keep_step(const Variant& before, const Variant& after) {
  if (options_.keep_steps.empty()) return;
  const std::string number = std::to_string(tried_);
  const std::string stem = options_.keep_steps + "/" + (number.size() < 2 ? "0" + number : number);
  save_with_plan(*before.program, *before.plan, Json(), stem + "-before.lissome");
  save_with_plan(*after.program, *after.plan, Json(), stem + "-after.lissome");
}

Optimized Search::take_best(OptimizationRecord record) const {
  record.spent_seconds = spent_seconds();
  Optimized result{*best_->program, *best_->plan, std::move(record)};
  for (const GoalRecord& goal : result.record.goals) result.met = result.met && goal.met;
  return result;
}

Optimized Search::finish() {
  OptimizationRecord record = record_;
  complete_record(record, *original_, *best_, bench_, options_, control_);
  return take_best(std::move(record));
}

Optimized Search::describe_so_far() const {
  OptimizationRecord record = record_;
  record.interrupted = true;
  describe_steps_so_far(record, *original_, *best_, options_);
  return take_best(std::move(record));
}

void Search::tell_so_far(bool better) const {
  if (options_.on_step) options_.on_step(describe_so_far(), better);
}

}  // namespace lissome
