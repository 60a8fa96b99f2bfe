#include "lissome/tune/search.h"

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lissome/pass.h"
#include "lissome/tune/calibration.h"
#include "lissome/tune/goals.h"
#include "lissome/tune/record.h"

namespace lissome {
namespace {

constexpr int kExpectedSteps = 10;        // number of steps assumed for the time left until it is known
constexpr double kMostFinishing = 12;     // seconds reserved for the last measurement, at most
constexpr double kFinishingShare = 0.15;  // share of the time for the last measurement, at most
constexpr double kMostMeasuring = 4;      // seconds of interleaved runs for one step, at most
constexpr double kLeastMeasuring = 0.2;   // seconds of interleaved runs for one step, at least
constexpr double kMeasuredShare =
    0.4;  // share of a step's time for them; the rest is for lowering, calibration and judging
constexpr double kJudgingShare = 0.1;      // share of the time for the outputs of the original on held-out data
constexpr double kCalibrationShare = 0.1;  // share of the time for calibrating int8 once
constexpr double kCalibrationPasses = 6;   // calls of the original that it takes for each sample, about
constexpr double kSecondsToJudgeFirst = 1;
constexpr int64_t kLeastJudged = 16;       // fewest samples that quality is judged on, and that calibrate
constexpr int64_t kQualityBatch = 32;      // samples of a run when judging quality
constexpr int64_t kMostCalibration = 512;  // most samples for calibration

// `outputs`: of the original. The cosine of single numbers compares their signs alone.
Metric choose_metric(const Dataset* data, const std::optional<Metric>& wanted, const OutputRows& outputs) {
  if (wanted) return *wanted;
  if (data != nullptr && has_classes(*data) && explain_unused_labels(*data, outputs).empty()) return Metric::top1;
  return outputs.width == 1 ? Metric::relative_error : Metric::cosine;
}

LowerOptions reference_lowering(const OptimizeOptions& options) {
  LowerOptions lowering;
  lowering.effort = Effort::fast;
  lowering.forced = {{"*", "reference"}};
  lowering.threads = options.threads;
  return lowering;
}

double steps_end(double seconds) { return seconds - std::min(kMostFinishing, kFinishingShare * seconds); }

// Keeps a version that does not pay by itself if it needs no libtorch, because it opens in milliseconds and runs with
// the runtime alone. A version that still needs libtorch is kept if it is not slower, because later steps build on it.
void keep_without_libtorch(const Plan& plan, const Verdict& verdict, StepRecord& step) {
  if (verdict.over_goal) return;
  const bool frees = !plan.needs_reference();
  if (!frees && verdict.ratio.interval.low > 1) return;
  step.accepted = true;
  step.reason = std::string(frees ? "runs without libtorch, so it is kept" : "later steps build on it, so it is kept") +
                "; " + verdict.reason;
}

std::string format_loss(double loss, double allowed) {
  char text[96];
  std::snprintf(text, sizeof text, "loses %.4g, %.4g is allowed", loss, allowed);
  return text;
}

}  // namespace

Search::Search(const Program& original, const Dataset* data, const OptimizeOptions& options, const WorkControl& control)
    : options_(options),
      control_(control),
      signature_(describe_inputs(original)),
      call_(describe_call(original)),
      batch_(call_.choose_batch(options.batch)) {
  work_.on_progress = control.on_progress;
  work_.should_stop = [this] { return control_.stopped() || watch_.seconds() > steps_end(options_.seconds); };
  record_.model = options.model_name;
  record_.command = options.command;
  record_.seed = options.seed;
  record_.batch = batch_;
  record_.machine = processor_name() + ", " + std::to_string(usable_threads()) + " threads, " + describe_features();
  set_up_data(data);
  original_ = make_variant("original", std::make_shared<const Program>(original), reference_lowering(options), bench_);
  best_ = original_;
  best_ratio_ = {1, {1, 1}, 1};
  report_so_far(true);  // before the first progress, which promises a best version so far
  report("basic", "measuring the original");
  if (split_) {
    set_up_judge(data);
  } else {
    record_.metric = std::string(metric_name(choose_metric(nullptr, options.metric, {})));
    record_.data_note = "there is no data, so inputs are generated and only exact steps are tried";
  }
  front_.emplace(options.front, options.model_name, is_higher_better(parse_metric(record_.metric)),
                 options.goal.max_loss);
}

double Search::time_sample() {
  original_->session->run(bench_.views);  // the first call sets up memory
  const Stopwatch watch;
  original_->session->run(bench_.views);
  return std::max(watch.seconds() / static_cast<double>(std::max<int64_t>(batch_, 1)), 1e-9);
}

int64_t Search::count_affordable_samples(double share, double seconds_each) const {
  const double affordable = share * options_.seconds / seconds_each;
  return std::max(kLeastJudged, static_cast<int64_t>(std::min(affordable, 1e15)));
}

void Search::shorten_data(double seconds_each) {
  Dataset &calibration = split_->calibration, &held_out = split_->validation;
  if (std::max(calibration.samples(), held_out.samples()) <= kLeastJudged) return;
  const auto shorten = [](Dataset& rows, int64_t most) {
    rows.rows.resize(static_cast<size_t>(std::min(rows.samples(), most)));
  };
  shorten(held_out, count_affordable_samples(kJudgingShare, seconds_each));
  shorten(calibration, count_affordable_samples(kCalibrationShare, kCalibrationPasses * seconds_each));
}

void Search::set_up_judge(const Dataset* data) {
  Dataset& held_out = split_->validation;
  held_out_ = held_out.samples();
  const double each = time_sample();
  shorten_data(each);
  // Few are enough for the first step, which is exact, and so it comes soon.
  judged_ = held_out;
  const auto few = std::max(kLeastJudged, static_cast<int64_t>(kSecondsToJudgeFirst / each));
  held_out.rows.resize(static_cast<size_t>(std::min(few, held_out.samples())));
  OutputRows outputs = collect_outputs(*original_->session, held_out, kQualityBatch, call_.batch(), control_);
  const Metric metric = choose_metric(data, options_.metric, outputs);
  const std::string unused = data == nullptr || options_.metric ? "" : explain_unused_labels(*data, outputs);
  if (!unused.empty()) unused_labels_ = "the labels are not used: " + unused;
  record_.metric = std::string(metric_name(metric));
  // Where outputs are incomplete, nothing can be judged and nothing will be tried.
  if (!control_.stopped()) judge_by(metric, std::move(outputs));
}

void Search::judge_by(Metric metric, OutputRows outputs) {
  judge_.emplace(metric, split_->validation, std::move(outputs));
  original_->quality = judge_->original();
  record_.data_note = judge_->describe();
  if (split_->validation.samples() < held_out_)
    record_.data_note += " (--time allows no more of the " + std::to_string(held_out_) + ")";
  if (!unused_labels_.empty()) record_.data_note += "; " + unused_labels_;
  record_.data_note += "; " + std::to_string(split_->calibration.samples()) + " other samples are used for calibration";
}

void Search::widen_judge() {
  if (!judge_ || judged_.samples() == split_->validation.samples()) return;
  report("basic", "the original's answers on held-out samples");
  OutputRows outputs = collect_outputs(*original_->session, judged_, kQualityBatch, call_.batch(), control_);
  OutputRows of_best = collect_outputs(*best_->session, judged_, kQualityBatch, call_.batch(), control_);
  if (control_.stopped()) return;
  split_->validation = std::move(judged_);
  judged_ = split_->validation;
  judge_by(parse_metric(record_.metric), std::move(outputs));
  best_->quality = judge_->measure(of_best);
}

void Search::set_up_data(const Dataset* data) {
  if (data != nullptr) {
    const Dataset fitted = fit_dataset(*data, signature_);
    SplitOptions split;
    split.seed = options_.seed;
    split.calibration = 0.25;
    split.most_calibration = kMostCalibration;
    split_ = split_dataset(fitted, split);
    bench_.inputs = take_call(split_->validation, batch_);
  } else {
    bench_.inputs = generate_inputs(signature_, call_.choose(batch_), options_.seed);
  }
  bench_.take_samples = [this](int64_t samples) {
    return split_ ? take_call(split_->validation, samples)
                  : generate_inputs(signature_, call_.choose(samples), options_.seed);
  };
  for (const NamedArray& input : bench_.inputs) bench_.views.push_back(input.array.view());
}

const Prepared& Search::fused() {
  if (fused_) return *fused_;
  std::vector<PassResult> results;
  fused_ = Prepared{std::make_shared<const Program>(prepare_inference(*original_->program, {}, &results)), {}};
  for (const PassResult& result : results) {
    if (result.rewrites > 0)
      fused_->notes.push_back(result.name + ": " + std::to_string(result.rewrites) + " rewrites");
  }
  return *fused_;
}

CalibrationBatches Search::calibration_batches() const { return cut_calibration(split_->calibration, call_.batch()); }

void Search::report(const std::string& stage, const std::string& message) {
  Progress progress;
  progress.stage = stage;
  progress.message = message;
  const int expected = std::max(kExpectedSteps, tried_ + 1);
  progress.fraction = static_cast<double>(tried_) / expected;
  const double left = std::max(options_.seconds - spent_seconds(), 0.0);
  progress.seconds_left = tried_ > 0 ? std::min(left, spent_seconds() / tried_ * (expected - tried_)) : left;
  control_.report(progress);
}

int64_t Search::count_record_bytes() const {
  constexpr int64_t kLater = 2 << 10;  // of figures that are measured at the end
  const ModelFile file = pack_with_record(*best_->program, *best_->plan, to_json(record_), FileContents::plan);
  return count_model_file(file) - count_file_bytes(*best_) + kLater;
}

bool Search::is_allowed(double loss) const { return is_allowed_loss(loss, options_.goal.max_loss); }

bool Search::judge_quality(Variant& variant, StepRecord& step, const WorkControl& control) {
  last_loss_.reset();
  if (!judge_) return true;
  const OutputRows outputs =
      collect_outputs(*variant.session, split_->validation, kQualityBatch, call_.batch(), control);
  if (control.stopped()) {  // the outputs are incomplete
    step.reason = std::string(control_.stopped() ? "interrupted" : kNoTimeLeft) + " before its quality was measured";
    return false;
  }
  variant.quality = judge_->measure(outputs);
  step.quality_before = best_->quality;
  step.quality_after = variant.quality;
  const double loss = judge_->loss(*variant.quality);
  if (is_allowed(loss)) return true;
  last_loss_ = loss;
  step.reason = format_loss(loss, options_.goal.max_loss) + " (measured: " + step.reason + ")";
  return false;
}

double Search::measuring_seconds() const {
  const double left = steps_end(options_.seconds) - watch_.seconds();
  const int steps = std::max(kExpectedSteps - tried_, 1);
  return std::clamp(kMeasuredShare * left / steps, kLeastMeasuring, kMostMeasuring);
}

bool Search::try_step(const std::string& stage, const std::string& name, const std::function<Proposal()>& propose,
                      Keep keep) {
  last_loss_.reset();
  // A step that is kept for other reasons than speed is built even without time left; its measurement is cut short.
  const WorkControl& control = keep == Keep::when_it_pays ? work_ : control_;
  if (stop_step(stage, name, control)) return false;
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
    proposal.lowering.should_stop = control.should_stop;
    if (stop_step(stage, name, control)) return false;
    variant = make_variant(name, std::move(proposal.program), proposal.lowering, bench_);
    for (const LargerForm& form : list_larger_forms(*variant->plan)) step.notes.push_back(describe_larger_form(form));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;           // the model's file or the disk: no other step would fare better
    if (stop_step(stage, name, control)) return false;  // what was cut short refuses for other reasons
    const char* what = error.kind() == ErrorKind::internal ? "this step failed: " : "this step is not possible here: ";
    skip_step(stage, name, what + error.message());
    return false;
  } catch (const c10::Error& error) {  // what no op of a program explains; the best so far stands all the same
    if (!stop_step(stage, name, control))
      skip_step(stage, name, std::string("this step failed: libtorch reports: ") + error.what_without_backtrace());
    return false;
  }
  if (stop_step(stage, name, control)) return false;
  Rivals rivals = open_rivals(*best_, *variant, bench_, options_.goal);
  const Need without_record = rivals.size;
  if (options_.goal.size) {
    const int64_t record = count_record_bytes();
    rivals.size.before += record, rivals.size.after += record;
  }
  const Verdict verdict = judge_speed(
      rivals,
      {.seconds = measuring_seconds(), .confirm = keep == Keep::when_it_pays, .should_stop = work_.should_stop});
  if (stop_step(stage, name, control)) return false;  // a comparison that was cut short has no result
  step.reason = verdict.reason;
  step.seconds_before = verdict.seconds_before;
  step.seconds_after = verdict.seconds_after;
  step.ratio = verdict.ratio;
  step.memory_before = rivals.memory.before;
  step.memory_after = rivals.memory.after;
  step.size_before = count_weight_bytes(*best_);
  step.size_after = count_weight_bytes(*variant);
  step.accepted = verdict.accepted;
  if (!step.accepted && keep == Keep::without_libtorch) keep_without_libtorch(*variant->plan, verdict, step);
  const Ratio to_original = chain_ratios(best_ratio_, verdict.ratio);
  step.accepted = step.accepted && judge_quality(*variant, step, control);
  add_to_front(*variant, step, to_original, without_record);
  step.spent_seconds = watch.seconds();
  step.finished_seconds = watch_.seconds();
  ++tried_;
  if (step.accepted) {
    keep_step(*best_, *variant);
    best_ratio_ = to_original;
    record_.file_bytes = without_record.after;
    best_ = std::move(variant);
  }
  record_.steps.push_back(step);
  report_so_far(step.accepted);
  return step.accepted;
}

void Search::add_to_front(Variant& variant, StepRecord& step, const Ratio& ratio, const Need& size) {
  if (!original_seconds_) {
    original_seconds_ = step.seconds_before;
    PointRecord point{
        .name = "original", .file = {}, .ratio = best_ratio_, .memory = step.memory_before, .size = size.before};
    point.seconds = step.seconds_before;
    point.quality = original_->quality;
    point.allowed = point.chosen = true;
    front_->add(std::move(point), *original_);
  }
  PointRecord point{.name = step.name, .file = {}, .ratio = ratio, .memory = step.memory_after, .size = size.after};
  point.seconds = *original_seconds_ * ratio.median;  // the machine may be faster or slower now
  if (judge_ && !variant.quality) {
    if (!front_->may_hold(point) || work_.stopped()) return;
    const OutputRows outputs =
        collect_outputs(*variant.session, split_->validation, kQualityBatch, call_.batch(), work_);
    if (work_.stopped()) return;  // the outputs are incomplete
    step.quality_after = variant.quality = judge_->measure(outputs);
  }
  point.quality = variant.quality;
  point.chosen = step.accepted;
  point.allowed = !judge_ || is_allowed(judge_->loss(*point.quality));
  front_->add(std::move(point), variant);
}

bool Search::stop_step(const std::string& stage, const std::string& name, const WorkControl& control) {
  if (!control.stopped()) return false;
  skip_step(stage, name, control_.stopped() ? "interrupted" : std::string(kNoTimeLeft));
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
  save_prepared(*before.program, *before.plan, stem + "-before.lissome");
  save_prepared(*after.program, *after.plan, stem + "-after.lissome");
}

Optimized Search::take_best(OptimizationRecord record) const {
  if (front_) record.front = front_->points();
  Optimized result{*best_->program, *best_->plan, std::move(record)};
  for (const GoalRecord& goal : result.record.goals) result.met = result.met && goal.met;
  return result;
}

Optimized Search::finish() {
  OptimizationRecord record = record_;
  if (front_) record.front = front_->points();
  complete_record(record, *original_, *best_, bench_, options_, control_,
                  [&] { return control_.stopped() || watch_.seconds() > options_.seconds; });
  record.spent_seconds = spent_seconds();
  if (!control_.stopped()) judge_with_file(record, *best_, options_);
  return take_best(std::move(record));
}

Optimized Search::describe_so_far() const {
  OptimizationRecord record = record_;
  record.interrupted = true;
  record.spent_seconds = spent_seconds();
  describe_steps_so_far(record, *original_, *best_, options_);
  return take_best(std::move(record));
}

void Search::report_so_far(bool better) const {
  if (options_.on_step) options_.on_step(describe_so_far(), better);
}

}  // namespace lissome
