// Runs the programs of a folder natively and through ATen (step_cases.py writes them). One line of JSON each on stdout.
//
//   run_cases check FOLDER     compares on each level of instruction sets with one to three threads, on normal and on
//                              special numbers: {"name", "kernels", "faults"}
//   run_cases time FOLDER THREADS SECONDS    times both, rounds interleaved, in so many seconds a case: {"name",
//                              "kernel", "isa", "seconds", "libtorch", "ratio": [low, median, high], "steps", "limit",
//                              "bound"}
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "lissome/base.h"
#include "lissome/lower.h"
#include "lissome/measure.h"
#include "lissome/program.h"
#include "tests/cases/case_agreement.h"
#include "tests/cases/case_program.h"

namespace lissome {
namespace {

constexpr const char* kLevels[] = {"amx", "bf16", "vnni", "avx512", "avx2", "none"};
constexpr int kMostThreads = 3;

std::shared_ptr<const Plan> lower(const CaseProgram& from, int threads, bool native) {
  LowerOptions options;
  options.effort = Effort::fast;
  options.threads = threads;
  options.forced = from.forced;
  if (!native) options.forced = {{"*", "reference"}};
  return std::make_shared<const Plan>(lower_program(from.program, options));
}

// ---- check

struct Checked {
  std::set<std::string> kernels;
  std::vector<std::string> faults;
};

void check_plan(const CaseProgram& made, const std::vector<c10::IValue>& expected, const CaseTolerance& tolerance,
                const std::string& where, int threads, Checked& checked) {
  const std::shared_ptr<const Plan> plan = lower(made, threads, true);
  for (const PlanStep& step : plan->steps) checked.kernels.insert(step.kernel);
  Session session(plan, {.threads = threads});
  const std::vector<c10::IValue> seen = run_session(session, made.inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string fault = find_case_fault(seen.at(i).toTensor(), expected[i].toTensor(), tolerance);
    if (!fault.empty()) checked.faults.push_back(where + ", output " + std::to_string(i) + ": " + fault);
  }
}

// In f64 where the program knows floats of one width alone: oneDNN, which ATen hands f32 to, gives NaN for
// gelu(infinity), and two runs in f32 may both be far from the truth.
std::vector<c10::IValue> find_expected(const std::string& text, CaseNumbers numbers) {
  const bool widens = text.find("bf16") == std::string::npos && !holds_bytes(text);
  at::manual_seed(0);
  const CaseProgram made =
      read_case_program(widens ? std::regex_replace(text, std::regex("\\bf32\\b"), "f64") : text, numbers);
  std::vector<c10::IValue> expected = interpret(made.program, made.inputs);
  for (c10::IValue& value : expected) {
    if (value.toTensor().scalar_type() == at::kDouble) value = value.toTensor().to(at::kFloat);
  }
  return expected;
}

void check_numbers(const CaseFile& file, CaseNumbers numbers, Checked& checked) {
  const std::vector<c10::IValue> expected = find_expected(file.text, numbers);
  at::manual_seed(0);
  const CaseProgram made = read_case_program(file.text, numbers);
  const CaseTolerance tolerance = choose_tolerance(file.text);
  for (const char* level : kLevels) {
    mask_features(level);
    for (int threads = 1; threads <= kMostThreads; ++threads) {
      const std::string where = std::string(numbers == CaseNumbers::special ? "special numbers, " : "") + level + ", " +
                                std::to_string(threads) + " threads";
      check_plan(made, expected, tolerance, where, threads, checked);
    }
  }
  mask_features("amx");
}

Json check_case(const CaseFile& file) {
  Checked checked;
  try {
    check_numbers(file, CaseNumbers::normal, checked);
    // Sums of products in another order, and of transformed images, have other infinities and NaN; bytes have none.
    if (keeps_special_numbers(file.text)) check_numbers(file, CaseNumbers::special, checked);
  } catch (const std::exception& error) {
    checked.faults.emplace_back(error.what());
  }
  return {{"name", file.name}, {"kernels", checked.kernels}, {"faults", checked.faults}};
}

// ---- time

struct Timed {
  std::string isa;
  double seconds = 0, limit = 0;
  std::string bound;
};

// All steps of the program, the least of some runs, and what the machine needs for them at least.
Timed time_steps(Session& session, const CaseProgram& made, const std::string& kernel, const MachinePeaks& peaks) {
  constexpr int kRuns = 20;
  std::vector<StepTiming> steps;
  Timed timed;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<StepTiming> now;
    const StepSink sink = [&](const StepTiming& timing) { now.push_back(timing); };
    run_session(session, made.inputs, &sink);
    double seconds = 0;
    for (const StepTiming& step : now) seconds += static_cast<double>(step.nanoseconds) * 1e-9;
    if (run == 0 || seconds < timed.seconds) timed.seconds = seconds, steps = now;
  }
  int64_t working_set = 0;
  for (const StepTiming& step : steps) working_set += step.bytes;
  const double read_rate = choose_read_rate(peaks, working_set, cache_sizes());
  for (const StepTiming& step : steps) {
    const StepLimit limit = find_step_limit(step.kernel, step.bytes, step.products, step.multiplied, peaks, read_rate);
    timed.limit += limit.seconds;
    if (step.kernel == kernel) timed.isa = step.isa, timed.bound = limit.what;
  }
  return timed;
}

Json time_case(const CaseFile& file, const std::string& kernel, int threads, double seconds,
               const MachinePeaks& peaks) {
  at::manual_seed(0);
  const CaseProgram made = read_case_program(file.text, CaseNumbers::positive);
  Session ours(lower(made, threads, true), {.threads = threads});
  Session theirs(lower(made, threads, false), {.threads = threads});
  const Interleaved times = compare_interleaved(
      {{"libtorch", [&] { run_session(theirs, made.inputs); }}, {"native", [&] { run_session(ours, made.inputs); }}},
      {.rounds = 100000, .seconds = seconds});
  const Timed steps = time_steps(ours, made, kernel, peaks);
  const Ratio& ratio = times.ratios[1];
  return {{"name", file.name},
          {"kernel", kernel},
          {"isa", steps.isa},
          {"seconds", times.summaries[1].median},
          {"libtorch", times.summaries[0].median},
          {"ratio", {ratio.interval.low, ratio.median, ratio.interval.high}},
          {"steps", steps.seconds},
          {"limit", steps.limit},
          {"bound", steps.bound}};
}

void print(const Json& json) {
  std::printf("%s\n", json.dump().c_str());
  std::fflush(stdout);
}

// "softmax_2" is the second case of softmax.
std::string find_kernel(const std::string& name) {
  const size_t cut = name.find_last_of('_');
  const bool numbered = cut != std::string::npos && name.find_first_not_of("0123456789", cut + 1) == std::string::npos;
  return numbered && cut + 1 < name.size() ? name.substr(0, cut) : name;
}

int run(const std::vector<std::string>& words) {
  register_ops();
  set_cache_folder("none");
  // As the steps that lissome computes itself: denormals count as zero.
  at::globalContext().setFlushDenormal(true);
  if (words.size() == 2 && words[0] == "check") {
    for (const CaseFile& file : read_case_files(words[1])) print(check_case(file));
    return 0;
  }
  if (words.size() != 4 || words[0] != "time")
    throw_error(ErrorKind::usage, "run_cases check FOLDER | time FOLDER THREADS SECONDS");
  const int threads = std::stoi(words[2]);
  at::set_num_threads(threads);
  const MachinePeaks peaks = measure_peaks(threads);
  for (const CaseFile& file : read_case_files(words[1]))
    print(time_case(file, find_kernel(file.name), threads, std::stod(words[3]), peaks));
  return 0;
}

}  // namespace
}  // namespace lissome

int main(int count, char** words) {
  try {
    return lissome::run({words + 1, words + count});
  } catch (const lissome::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return lissome::exit_code(error.kind());
  }
}
