// bf16 and int8 by rule: what optimize() searches for and proves, made at once.
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cmath>

#include "lissome/compress.h"
#include "lissome/pass.h"
#include "lissome/tune.h"
#include "lissome/tune/calibration.h"

namespace lissome {
namespace {

constexpr int64_t kFewestRows = 16, kMostRows = 512;  // that calibrate, and as many that judge
constexpr int64_t kBytesRead = int64_t{2} << 30;  // of weights while calibrating: a row reads each of them about once
constexpr int64_t kJudgedTogether = 32;           // samples of one run
constexpr double kSecondsOfTiming = 1.5;          // for all forms of int8 together
constexpr double kExpectedForms = 5;              // f32, two kinds of int8, two mixed with others
constexpr int kMostTimed = 1000;                  // rounds of it

std::string describe_layers(const std::vector<QuantizedLayer>& layers, bool dynamic) {
  const auto smoothed =
      std::ranges::count_if(layers, [](const QuantizedLayer& layer) { return layer.smoothing.strength > 0; });
  std::string text = "int8, " + count_layers(layers);
  if (dynamic) text += ", dynamic";
  if (smoothed > 0) text += ", " + std::to_string(smoothed) + " smoothed";
  return text;
}

std::string count_samples(int64_t samples) { return std::to_string(samples) + (samples == 1 ? " sample" : " samples"); }

// Empty where there are enough.
std::string describe_few_rows(const DataSplit& split) {
  constexpr int64_t kFew = 32;
  const int64_t calibration = split.calibration.samples(), judged = split.validation.samples();
  if (calibration >= kFew && judged >= kFew) return {};
  return count_samples(calibration) + " for calibration and " + std::to_string(judged) +
         " for judging are few: the ranges, the signal of the layers and the error say little of others; give " +
         std::to_string(2 * kFew) + " or more";
}

bool is_linear(const QuantizedLayer& layer) { return layer.op.find("linear") != std::string::npos; }

[[noreturn]] void refuse_int8(const std::vector<QuantizedLayer>& layers) {
  refuse_layers(layers, "layer of the model can be int8", "linear, convolution, LSTM or GRU");
}

}  // namespace

Dtype parse_target_precision(const std::string& word) {
  if (word == "f32") return Dtype::f32;
  if (word == "bf16") return Dtype::bf16;
  if (word == "int8") return Dtype::i8;
  throw_error(ErrorKind::usage, "the precision must be f32, bf16 or int8, not ", quote(word));
}

std::string describe_error(const PrecisionForm& form) {
  std::string text;
  if (form.error) text += "answers differ from f32's by " + format_percent(*form.error) + " (relative error)\n";
  if (form.accuracy)
    text += "top-1 accuracy " + format_percent(form.accuracy->form) + ", in f32 " + format_percent(form.accuracy->f32) +
            ", on " + count_samples(form.accuracy->samples) + "\n";
  return text;
}

PrecisionMaker::PrecisionMaker(std::shared_ptr<const Program> program, const Dataset* data, LowerOptions lowering,
                               std::vector<NamedArray> call, WorkControl control)
    : program_(std::move(program)),
      lowering_(std::move(lowering)),
      call_(std::move(call)),
      control_(std::move(control)) {
  batch_ = describe_call(*program_).batch();
  if (data != nullptr) data_ = *data;
  if (call_.empty() && data_) call_ = take_call(*data_, batch_.nearest(1));
  if (!call_.empty()) lowering_.inputs = to_ivalues(call_);
}

PrecisionMaker::~PrecisionMaker() = default;

PrecisionForm PrecisionMaker::make(Dtype precision) {
  if (precision == Dtype::f32) return make_f32();
  return precision == Dtype::bf16 ? make_bf16() : make_int8().front();
}

PrecisionForm PrecisionMaker::make_f32() { return lower("f32", program_).form; }

PrecisionForm PrecisionMaker::make_bf16() {
  report("bf16");
  const auto converted = std::make_shared<const Program>(convert_bf16(*program_));
  const bool changes = computes_in_bf16(*converted);
  Candidate made = lower(changes ? "bf16" : "f32", converted);
  if (!changes)
    made.form.notes.emplace_back(
        "nothing is computed in bf16, because the model has no product or convolution in f32: this is its form without "
        "--precision");
  if (changes && !has(Feature::avx512_bf16))
    made.form.notes.push_back("this processor has no bf16 products: bf16 saves memory, and takes longer than f32");
  if (data_) judge(made, collect_answers(cut_rows(*data_)));
  return std::move(made.form);
}

PrecisionMaker::Rows PrecisionMaker::split_rows() {
  if (!data_) throw_error(ErrorKind::usage, "int8 needs data: the ranges of activations are read off its rows");
  SplitOptions options;
  options.most_calibration = count_rows();
  DataSplit split = split_dataset(*data_, options);
  few_rows_ = describe_few_rows(split);
  return {std::move(split.calibration), collect_answers(cut_rows(std::move(split.validation)))};
}

Quantized PrecisionMaker::calibrate(const Dataset& rows, const QuantizeOptions& options, double least_signal_to_noise) {
  return Int8Calibration(program_, cut_calibration(rows, batch_), options, control_).quantize(least_signal_to_noise);
}

std::vector<PrecisionForm> PrecisionMaker::make_int8() {
  const Rows rows = split_rows();
  std::vector<Candidate> all;
  std::vector<QuantizedLayer> refused;
  for (const bool dynamic : {false, true}) {
    QuantizeOptions kind;
    kind.dynamic_linears = dynamic;
    Quantized quantized = calibrate(rows.calibration, kind, kLeastSignalToNoise);
    const bool few_linears = 2 * std::ranges::count_if(quantized.layers, is_linear) < std::ssize(quantized.layers);
    if (std::ranges::any_of(quantized.layers, &QuantizedLayer::quantized)) {
      std::string how = describe_layers(quantized.layers, dynamic);
      all.push_back(lower_quantized(std::move(how), std::move(quantized)));
      judge(all.back(), rows.answers);
    } else {
      refused = std::move(quantized.layers);
    }
    if (few_linears) break;  // convolutions are the same in both kinds
  }
  if (all.empty()) refuse_int8(refused);
  add_mixed(all, rows.answers);
  std::vector<PrecisionForm> forms;
  for (Candidate& made : all) forms.push_back(std::move(made.form));
  return forms;
}

PrecisionForm PrecisionMaker::quantize(const QuantizeOptions& options, double least_signal_to_noise) {
  if (!(least_signal_to_noise >= 0))  // NaN too
    throw_error(ErrorKind::usage, "the least signal is ", least_signal_to_noise, " dB; 0 or more is allowed");
  const Rows rows = split_rows();
  report("int8");
  return finish_int8(calibrate(rows.calibration, options, least_signal_to_noise), rows, options.dynamic_linears, "");
}

PrecisionForm PrecisionMaker::quantize_trained(const Program& original, const Train& train,
                                               const QuantizeOptions& options) {
  const Rows rows = split_rows();
  report("fake quantization");
  const CalibrationBatches batches = cut_calibration(rows.calibration, batch_);
  const Program trained = train(insert_fake_quantization(original, batches, options, control_));
  report("int8");
  const auto prepared = std::make_shared<const Program>(prepare_inference(trained));
  return finish_int8(Int8Calibration(prepared, batches, options, control_).quantize(0), rows, false, ", trained");
}

PrecisionForm PrecisionMaker::finish_int8(Quantized quantized, const Rows& rows, bool dynamic, const std::string& how) {
  if (std::ranges::none_of(quantized.layers, &QuantizedLayer::quantized)) refuse_int8(quantized.layers);
  std::string described = describe_layers(quantized.layers, dynamic) + how;
  Candidate made = lower_quantized(std::move(described), std::move(quantized));
  judge(made, rows.answers);
  return std::move(made.form);
}

PrecisionForm PrecisionMaker::quantize_weights(int bits, const QuantizeOptions& options) {
  std::optional<Rows> rows;
  if (data_) rows = split_rows();
  report("weights");
  const CalibrationBatches batches = rows ? cut_calibration(rows->calibration, batch_) : CalibrationBatches();
  Quantized quantized = lissome::quantize_weights(*program_, bits, batches, options, control_);
  if (std::ranges::none_of(quantized.layers, &QuantizedLayer::quantized))
    refuse_layers(quantized.layers, "weight of the model can be packed", "linear or embedding");
  std::string how = "weights of " + std::to_string(bits) + " bits, " + count_layers(quantized.layers);
  Candidate made = lower_quantized(std::move(how), std::move(quantized));
  if (rows) judge(made, rows->answers);
  return std::move(made.form);
}

PrecisionMaker::Candidate PrecisionMaker::lower(std::string how, std::shared_ptr<const Program> program) const {
  Candidate made{{.how = std::move(how), .program = std::move(program)}, nullptr};
  made.form.plan = std::make_shared<const Plan>(lower_program(*made.form.program, lowering_));
  made.session = std::make_unique<Session>(made.form.plan, SessionOptions{.threads = lowering_.threads});
  return made;
}

void PrecisionMaker::report(const std::string& how) {
  Progress progress;
  progress.stage = "prepare";
  progress.message = how;
  progress.fraction = std::min(made_++ / kExpectedForms, 0.9);
  control_.report(progress);
}

PrecisionMaker::Candidate PrecisionMaker::lower_quantized(std::string how, Quantized quantized) {
  Candidate made = lower(std::move(how), std::make_shared<const Program>(std::move(quantized.program)));
  made.form.notes = list_refusals(quantized.layers);
  made.form.layers = std::move(quantized.layers);
  return made;
}

// The better kind once more with int8 attention and with bf16 between its layers; the best of all first.
void PrecisionMaker::add_mixed(std::vector<Candidate>& all, const Answers& answers) {
  put_best_first(all);
  const PrecisionForm better = all.front().form;
  const auto add = [&](const char* what, Program changed) {
    report(better.how + what);
    // In front of what it is meant to improve, for where nothing is timed.
    all.insert(all.begin(), lower(better.how + what, std::make_shared<const Program>(std::move(changed))));
    all.front().form.notes = better.notes;
    judge(all.front(), answers);
  };
  Program attention = *better.program;
  if (is_timed() && quantize_attention(attention) > 0) add(", int8 attention", std::move(attention));
  if (has(Feature::avx512_bf16)) add(", the rest bf16", convert_bf16(*better.program));
  put_best_first(all);
}

// The fastest of those that are near enough, else the nearest.
void PrecisionMaker::put_best_first(std::vector<Candidate>& all) const {
  if (is_timed()) time_calls(all);
  const auto is_better = [](const Candidate& a, const Candidate& b) {
    const double error_a = a.form.error.value_or(0), error_b = b.form.error.value_or(0);
    const bool near = error_a <= kMostError;
    if (near != (error_b <= kMostError)) return near;
    return near ? a.form.seconds < b.form.seconds : error_a < error_b;
  };
  std::iter_swap(all.begin(), std::ranges::min_element(all, is_better));
}

void PrecisionMaker::time_calls(std::vector<Candidate>& all) const {
  std::vector<TensorView> views;
  for (const NamedArray& input : call_) views.push_back(input.array.view());
  std::vector<Contender> contenders;
  for (Candidate& made : all) contenders.push_back({made.form.how, [&made, &views] { made.session->run(views); }});
  InterleaveOptions options;
  options.rounds = kMostTimed;
  options.seconds = kSecondsOfTiming;
  const Interleaved timing = compare_interleaved(contenders, options);
  for (size_t i = 0; i < all.size(); ++i) all[i].form.seconds = timing.summaries[i].median;
}

// By rule instead of by time, so that the same data make the same file.
int64_t PrecisionMaker::count_rows() const {
  int64_t bytes = 1;
  for (const Weight& weight : program_->weights) bytes += static_cast<int64_t>(weight.tensor.nbytes());
  return std::clamp(kBytesRead / bytes, kFewestRows, kMostRows);
}

Dataset PrecisionMaker::cut_rows(Dataset rows) const {
  rows.rows.resize(static_cast<size_t>(std::min(rows.samples(), count_rows())));
  return rows;
}

PrecisionMaker::Answers PrecisionMaker::collect_answers(Dataset rows) {
  report("the answers in f32");
  const Candidate f32 = lower("f32", program_);
  Answers answers{std::move(rows), {}, {}, {}};
  try {
    answers.f32 = collect_outputs(*f32.session, answers.rows, kJudgedTogether, batch_);
    note_infinite(answers);
  } catch (const Error& error) {
    // Such a model is made all the same, with a note.
    if (error.kind() != ErrorKind::invalid_input) throw;
    answers.unjudged = "how much its answers differ was not measured: " + error.message();
  }
  return answers;
}

// Nothing can be computed of numbers that are infinite or NaN in f32.
void PrecisionMaker::note_infinite(Answers& answers) {
  const std::vector<float>& numbers = answers.f32.values;
  const auto infinite = std::ranges::count_if(numbers, [](float number) { return !std::isfinite(number); });
  if (infinite == 0) return;
  if (infinite == std::ssize(numbers)) {
    answers.unjudged = "how much its answers differ was not measured: all are infinite or NaN in f32";
    return;
  }
  answers.left_out = std::to_string(infinite) + " of " + std::to_string(numbers.size()) +
                     " numbers of the answers are infinite or NaN in f32: the error is that of the others";
}

void PrecisionMaker::judge(Candidate& made, const Answers& answers) const {
  if (!few_rows_.empty() && std::ranges::find(made.form.notes, few_rows_) == made.form.notes.end())
    made.form.notes.push_back(few_rows_);
  if (!answers.unjudged.empty()) return made.form.notes.push_back(answers.unjudged);
  if (!answers.left_out.empty()) made.form.notes.push_back(answers.left_out);
  Dataset rows = answers.rows;
  rows.labels.reset();  // else the error would be that of the answers beside the labels
  const QualityJudge judge(Metric::relative_error, rows, answers.f32);
  const OutputRows outputs = collect_outputs(*made.session, answers.rows, kJudgedTogether, batch_);
  made.form.error = judge.measure(outputs);
  const std::string unused = explain_unused_labels(answers.rows, answers.f32);
  if (unused.empty() && !has_classes(answers.rows)) return;
  const std::string refusal = unused.empty() ? refuse_classes(answers.rows, answers.f32) : unused;
  if (!refusal.empty()) return made.form.notes.push_back("there is no top-1 accuracy: " + refusal);
  const QualityJudge classes(Metric::top1, answers.rows, answers.f32);
  made.form.accuracy = PrecisionForm::Accuracy{classes.original(), classes.measure(outputs), answers.rows.samples()};
}

}  // namespace lissome
