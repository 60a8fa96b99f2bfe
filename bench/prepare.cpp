// Makes the models that the comparison with the peers runs, one for each precision, without the search of
// `lissome optimize`: that takes minutes a model, because it proves each step, where the comparison proves the result.
//   lissome_bench_prepare MODEL.pt2 CALIBRATION.npz THREADS FOLDER [PRECISION...]
// FOLDER gets f32.lissome, bf16.lissome and int8.lissome and prepared.json, which says how each was made, and of each
// file the bytes of the weights that it was made of (of int8 ones with their rows' sums), of forms that timing chose
// though they are larger, and of the arena of one call. bf16 and int8 are left out where this processor or the model
// has no use for them, or where precisions are named and they are not among these. Of the kinds of int8 the fastest is
// kept that loses no more on rows that did not calibrate it than `lissome optimize` would allow.
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lissome/compare.h"
#include "lissome/compress.h"
#include "lissome/data.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/program.h"

namespace {

using namespace lissome;  // NOLINT: a program on the faces

// As cosine, this is 0.005: what `lissome optimize` may lose by default.
constexpr double kMostError = 0.1;
constexpr double kSecondsOfTiming = 1.5;

struct Made {
  std::string how;
  Program program;
  std::shared_ptr<const Plan> plan;
  std::unique_ptr<Session> session;
  double error = 0;  // relative, against f32
  double seconds = 0;
};

class Maker {
 public:
  Maker(const std::string& model, const std::string& data, int threads)
      : program_(std::make_shared<const Program>(prepare_inference(import_pt2(model)))), threads_(threads) {
    const std::vector<DataSignature> signature = describe_inputs(*program_);
    batch_ = std::max<int64_t>(signature.at(0).sizes.at(0), 1);
    Dataset rows = fit_dataset(load_dataset(data), signature);
    calibration_ = judging_ = rows;
    const auto half = static_cast<std::ptrdiff_t>(rows.rows.size() / 2);
    calibration_.rows.assign(rows.rows.begin(), rows.rows.begin() + half);
    judging_.rows.assign(rows.rows.begin() + half, rows.rows.end());
    call_ = take_batch(rows, 0, batch_);
    for (const NamedArray& input : call_) views_.push_back(input.array.view());
  }

  Made make_f32() {
    Made made = make("f32", *program_);
    f32_rows_ = collect_outputs(*made.session, judging_, batch_, describe_call(*program_).batch());
    return made;
  }
  Made make_bf16() {
    Made made = make("bf16", convert_bf16(*program_));
    judge(made);
    return made;
  }
  // Both kinds of scales, then the better of them with int8 attention and with bf16 between its layers. Empty if no
  // layer can be int8.
  std::vector<Made> make_int8() {
    std::vector<Made> all;
    for (const bool dynamic : {false, true}) {
      QuantizeOptions options;
      options.dynamic_linears = dynamic;
      Quantized quantized = quantize_int8(*program_, take_calibration_batches(), options);
      size_t layers = 0, linears = 0, smoothed = 0;
      for (const QuantizedLayer& layer : quantized.layers) {
        layers += layer.quantized ? 1 : 0;
        linears += layer.op.find("linear") != std::string::npos ? 1 : 0;
        smoothed += layer.smoothing.strength > 0 ? 1 : 0;
      }
      // Convolutions are the same in both.
      if (dynamic && 2 * linears < quantized.layers.size()) break;
      if (layers == 0) continue;
      all.push_back(make("int8, " + std::to_string(layers) + " of " + std::to_string(quantized.layers.size()) +
                             " layers" + (dynamic ? ", dynamic" : "") +
                             (smoothed > 0 ? ", " + std::to_string(smoothed) + " smoothed" : ""),
                         std::move(quantized.program)));
      judge(all.back());
    }
    if (all.empty()) return all;
    const Made& better = all[choose(all)];
    const std::string how = better.how;
    const Program program = better.program;
    Program attention = program;
    if (quantize_attention(attention) > 0) {
      all.push_back(make(how + ", int8 attention", std::move(attention)));
      judge(all.back());
    }
    if (has(Feature::avx512_bf16)) {
      all.push_back(make(how + ", the rest bf16", convert_bf16(program)));
      judge(all.back());
    }
    return all;
  }

  // Measures all in turns and returns the fastest of those that are near enough, else the nearest.
  size_t choose(std::vector<Made>& all) const {
    std::vector<Contender> contenders;
    for (Made& made : all) contenders.push_back({made.how, [&made, this] { made.session->run(views_); }});
    InterleaveOptions options;
    options.rounds = 1000;
    options.seconds = kSecondsOfTiming;
    const Interleaved timing = compare_interleaved(contenders, options);
    for (size_t i = 0; i < all.size(); ++i) all[i].seconds = timing.summaries[i].median;
    const auto better = [](const Made& a, const Made& b) {
      const bool near = a.error <= kMostError;
      if (near != (b.error <= kMostError)) return near;
      return near ? a.seconds < b.seconds : a.error < b.error;
    };
    return static_cast<size_t>(std::min_element(all.begin(), all.end(), better) - all.begin());
  }

 private:
  Made make(std::string how, Program program) {
    Made made{std::move(how), std::move(program), nullptr, nullptr};
    LowerOptions options;
    options.threads = threads_;
    options.inputs = to_ivalues(call_);
    made.plan = std::make_shared<const Plan>(lower_program(made.program, options));
    made.session = std::make_unique<Session>(made.plan, SessionOptions{.threads = threads_});
    return made;
  }
  void judge(Made& made) {
    const QualityJudge judge(Metric::relative_error, judging_, f32_rows_);
    made.error = judge.measure(collect_outputs(*made.session, judging_, batch_, describe_call(*program_).batch()));
  }
  CalibrationBatches take_calibration_batches() const {
    CalibrationBatches batches;
    for (int64_t first = 0; first + batch_ <= calibration_.samples(); first += batch_) {
      const std::vector<NamedArray> arrays = take_batch(calibration_, first, batch_);
      std::vector<c10::IValue> values;
      for (const c10::IValue& value : to_ivalues(arrays)) values.emplace_back(value.toTensor().clone());
      batches.push_back(std::move(values));
    }
    return batches;
  }

  std::shared_ptr<const Program> program_;
  int threads_;
  int64_t batch_ = 1;
  Dataset calibration_, judging_;
  std::vector<NamedArray> call_;
  std::vector<TensorView> views_;
  OutputRows f32_rows_;
};

Json describe(const Made& made) { return {{"how", made.how}, {"error", made.error}, {"seconds", made.seconds}}; }

// Depthwise windows and biases in bf16 are read as f32.
bool is_widened(const Weight& weight, const Plan& plan) {
  const auto packs = [&](const PlanArray& array) {
    return array.array.dtype == Dtype::f32 && array.name.starts_with(weight.name + ".");
  };
  return weight.tensor.scalar_type() == at::kBFloat16 && std::ranges::any_of(plan.arrays, packs);
}

// In the type that the steps read, which is the program's but for what they widen; tied ones once.
int64_t count_weight_bytes(const Program& program, const Plan& plan) {
  std::map<const void*, int64_t> bytes;
  for (const Weight& weight : program.weights) {
    int64_t& most = bytes[weight.tensor.const_data_ptr()];
    const int64_t widened = is_widened(weight, plan) ? 2 : 1;
    most = std::max(most, widened * static_cast<int64_t>(weight.tensor.nbytes()));
  }
  int64_t all = 0;
  for (const auto& [address, size] : bytes) all += size;
  return all;
}

// An int8 weight is read with the sum of each of its rows, which the zero point of the inputs is multiplied with.
int64_t count_sum_bytes(const Plan& plan) {
  int64_t all = 0;
  for (const PlanArray& array : plan.arrays) all += array.name.ends_with(".sums") ? array.array.bytes() : 0;
  return all;
}

Json save(const Made& made, const std::string& path) {
  save_prepared(made.program, *made.plan, path);
  int64_t larger = 0;
  for (const LargerForm& form : list_larger_forms(*made.plan)) larger += form.bytes - form.plain_bytes;
  Json record = describe(made);
  record["weight_bytes"] = count_weight_bytes(made.program, *made.plan) + count_sum_bytes(*made.plan);
  record["larger_form_bytes"] = larger;
  record["arena_bytes"] = made.session->memory().arena;
  record["file_bytes"] = std::filesystem::file_size(path);
  return record;
}

// What an earlier call made of other precisions stays in the record.
Json read_record(const std::string& path) {
  std::ifstream file(path);
  return file ? Json::parse(file) : Json();
}

void make_models(const std::string& model, const std::string& data, int threads, const std::string& folder,
                 const std::set<std::string>& precisions) {
  const auto wants = [&](const char* precision) { return precisions.empty() || precisions.contains(precision); };
  Maker maker(model, data, threads);
  const std::string path = folder + "/prepared.json";
  Json record = read_record(path);
  const Made f32 = maker.make_f32();  // the others are judged by its answers
  record["f32"] = save(f32, folder + "/f32.lissome");
  if (wants("bf16") && has(Feature::avx512_bf16)) {
    const Made bf16 = maker.make_bf16();
    record["bf16"] = save(bf16, folder + "/bf16.lissome");
  }
  std::vector<Made> int8 = wants("int8") ? maker.make_int8() : std::vector<Made>();
  if (!int8.empty()) {
    const Made& chosen = int8[maker.choose(int8)];
    record["int8"] = save(chosen, folder + "/int8.lissome");
    for (const Made& made : int8) record["int8"]["tried"].push_back(describe(made));
  }
  write_file(path, record.dump(2) + "\n");
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 5) {
    std::fprintf(stderr, "usage: lissome_bench_prepare MODEL.pt2 CALIBRATION.npz THREADS FOLDER [PRECISION...]\n");
    return 2;
  }
  try {
    make_models(arguments[1], arguments[2], std::stoi(arguments[3]), arguments[4],
                {arguments + 5, arguments + argument_count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
