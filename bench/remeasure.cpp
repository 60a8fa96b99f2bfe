// Measures the accepted steps of finished searches again: were they really faster?
//   lissome_remeasure FOLDER INPUTS.npz [FOLDER INPUTS.npz ...]
// FOLDER is what `lissome optimize --keep-steps` wrote: NN-before.lissome and NN-after.lissome for each accepted step.
// The first row of INPUTS.npz is one call. Every step is measured ten times, each time with both models loaded anew and
// run in turns; the 99 % intervals of all ratios hold together (Holm). Exit code 1 when one lies on the slower side.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/measure.h"
#include "lissome/report.h"
#include "lissome/runtime.h"

namespace {

using namespace lissome;  // NOLINT: a program on the faces

constexpr int kMeasurements = 10;
constexpr double kConfidence = 0.99;

struct Step {
  std::string before, after;  // paths
  std::string inputs;
};

struct Claim {
  const Step* step = nullptr;
  RatioSample sample;  // after, before
};

std::vector<Step> list_steps(const std::string& folder, const std::string& inputs) {
  constexpr std::string_view kBefore = "-before.lissome";
  std::vector<Step> steps;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(kBefore)) continue;
    const std::string after = path.substr(0, path.size() - kBefore.size()) + "-after.lissome";
    if (!std::filesystem::exists(after))
      throw_error(ErrorKind::usage, quote(after), " is missing beside ", quote(path));
    steps.push_back({path, after, inputs});
  }
  if (steps.empty()) throw_error(ErrorKind::usage, quote(folder), ": no step; optimize with --keep-steps ", folder);
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.before < b.before; });
  return steps;
}

// A model with the first row of the arrays, matched by name, else by place.
class Caller {
 public:
  Caller(const std::string& model, const std::vector<NamedArray>& arrays) : session_(open(model)) {
    const std::vector<PlanInput>& inputs = session_.plan().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto named = std::find_if(arrays.begin(), arrays.end(),
                                      [&](const NamedArray& array) { return array.name == inputs[i].name; });
      const bool found = named != arrays.end();
      if (!found && i >= arrays.size()) throw_error(ErrorKind::usage, "no array for input ", quote(inputs[i].name));
      TensorView view = (found ? named->array : arrays[i].array).view();
      if (view.sizes.empty() || view.sizes[0] < 1) throw_error(ErrorKind::usage, "the inputs hold no row");
      view.sizes[0] = 1;
      views_.push_back(view);
    }
  }
  void call() { session_.run(views_); }

 private:
  // With the threads that the plan was made for.
  static Session open(const std::string& model) {
    const auto plan = std::make_shared<const Plan>(read_plan(load_model_file(model)));
    return Session(plan, {.threads = std::min(plan->machine.threads, usable_threads())});
  }

  Session session_;
  std::vector<TensorView> views_;
};

RatioSample measure(const Step& step, const std::vector<NamedArray>& arrays) {
  Caller before(step.before, arrays), after(step.after, arrays);
  InterleaveOptions options;
  options.warmup = 5;
  options.rounds = 150;
  options.least_rounds = 40;
  options.seconds = 2;
  Interleaved timing =
      compare_interleaved({{"before", [&] { before.call(); }}, {"after", [&] { after.call(); }}}, options);
  return {std::move(timing.seconds[1]), std::move(timing.seconds[0])};
}

std::vector<Claim> measure_all(const std::vector<Step>& steps) {
  std::vector<Claim> claims;
  for (const Step& step : steps) {
    std::fprintf(stderr, "measuring %s %d times\n", step.after.c_str(), kMeasurements);
    const std::vector<NamedArray> arrays = load_arrays(step.inputs);
    for (int i = 0; i < kMeasurements; ++i) claims.push_back({&step, measure(step, arrays)});
  }
  return claims;
}

int judge(const std::vector<Claim>& claims) {
  std::vector<RatioSample> samples;
  for (const Claim& claim : claims) samples.push_back(claim.sample);
  const std::vector<Ratio> ratios = estimate_simultaneous_ratios(samples, kConfidence);
  Table table{
      "",
      {{"step", ""}, {"before", "s"}, {"after", "s"}, {"after / before", ""}, {"from", ""}, {"to", ""}, {"", ""}},
      {}};
  int slower = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Ratio& ratio = ratios[i];
    slower += ratio.above_one();
    table.rows.push_back({claims[i].step->after, find_percentile(samples[i].denominator, 0.5),
                          find_percentile(samples[i].numerator, 0.5), ratio.median, ratio.interval.low,
                          ratio.interval.high,
                          ratio.above_one()   ? "SLOWER"
                          : ratio.below_one() ? "faster"
                                              : "even"});
  }
  std::printf("%s\n%zu measurements, simultaneous 99 %% intervals (Holm): %d on the slower side\n",
              render_table(table, {.width = 140}).c_str(), claims.size(), slower);
  return slower == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3 || count % 2 == 0) {
    std::fprintf(stderr, "usage: lissome_remeasure FOLDER INPUTS.npz [FOLDER INPUTS.npz ...]\n");
    return exit_code(ErrorKind::usage);
  }
  try {
    std::vector<Step> steps;
    for (int i = 1; i + 1 < count; i += 2) {
      for (Step& step : list_steps(arguments[i], arguments[i + 1])) steps.push_back(std::move(step));
    }
    return judge(measure_all(steps));
  } catch (const Error& error) {
    std::fprintf(stderr, "error %s\n", error.what());
    return exit_code(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error internal: %s\n", error.what());
    return 1;
  }
}
