// lissome optimize: makes a model faster by measured steps until it meets a goal, and writes the model and a report.
#include <ATen/core/ivalue.h>

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lissome/cli/best_so_far.h"
#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/lower_flags.h"
#include "lissome/cli/pick_point.h"
#include "lissome/cli/program_file.h"
#include "lissome/cli/writable.h"
#include "lissome/measure.h"
#include "lissome/pass.h"
#include "lissome/runtime.h"
#include "lissome/tune.h"

namespace lissome {
namespace {

constexpr double kWaitForFirst = 0.6;  // seconds that an interrupt waits until the original has run

struct OptimizeFlags {
  std::string model, data, labels, metric, latency, memory, size, throughput, first_answer, max_loss, precision,
      time = "10min", output, report, keep_steps, front, pick;
  LowerFlags lower{.effort = "normal", .kernels = {}};
  int64_t batch = 0;
  int threads = 0;
  uint64_t seed = 0;
  bool json = false, keep_original = false;
};

void read_flags(OptimizeFlags& to, const std::vector<std::string>& arguments) {
  Flags flags(
      "optimize",
      "Makes a model faster or smaller. Each step is measured on your data against the step before, and is undone if "
      "it does not pay. Without a goal, the model becomes as fast as --max-loss allows.");
  flags.require("MODEL", to.model, kModelHelp);
  flags.add("--data", to.data, kDataHelp);
  flags.add("--labels", to.labels, kLabelsHelp);
  flags.add("--metric", to.metric,
            "Metric of quality: top1, cosine, rel_error or mse. Default: top1 with class labels, else cosine. Without "
            "labels, it measures the agreement with the original model.");
  flags.add("--latency", to.latency, "Goal for the time of a call, for example 5ms.");
  flags.add("--memory", to.memory, "Goal for the memory of weights and all intermediate values, for example 200MiB.");
  flags.add("--size", to.size, "Goal for the file that is written, for example 10MiB.");
  flags.add("--throughput", to.throughput,
            "Goal for samples a second, for example 500/s, in calls of as many samples as serves best.");
  flags.add("--first-answer", to.first_answer,
            "Goal for the time to open the finished file and answer the first call, for example 300ms.");
  flags.add("--max-loss", to.max_loss, "Largest absolute loss of the metric. Default: 0.5%.");
  flags.add("--precision", to.precision,
            "The only lower precision that is tried: bf16 or int8, or f32 for none. Default: all are tried.");
  flags.add("--batch", to.batch, kCallBatchHelp, 0);
  flags.add("--threads", to.threads, "Threads; 0: the fastest number, which is measured.", 0, kMostThreads);
  add_lower_flags(flags, to.lower);
  flags.add("--time", to.time, "Limit on the time of the whole search, for example 10min.");
  flags.add("--seed", to.seed, kSeedHelp);
  flags.require("-o,--output", to.output, kModelOutputHelp);
  add_contents_flag(flags, to.keep_original);
  flags.add("--report", to.report, kReportHelp);
  flags.add(
      "--front", to.front,
      "Folder for the versions that no other one beats in time, memory, size and quality at once, and their list, "
      "front.json.");
  flags.add("--pick", to.pick,
            "Writes this version of the --front of an earlier search, by its name, and searches nothing.");
  flags.add("--keep-steps", to.keep_steps, "Folder for the models before and after every accepted step.");
  flags.add_json(to.json);
  flags.parse(arguments);
}

std::string quote_for_shell(const std::string& word) {
  return word.find_first_of(" '\"*?$&;<>|()") == std::string::npos ? word : "'" + word + "'";
}

OptimizeOptions make_options(const OptimizeFlags& flags, const std::vector<std::string>& arguments) {
  OptimizeOptions options;
  if (!flags.metric.empty()) options.metric = parse_metric(flags.metric);
  if (!flags.latency.empty()) options.goal.latency = parse_duration(flags.latency);
  if (!flags.memory.empty()) options.goal.memory = parse_bytes(flags.memory);
  if (!flags.size.empty()) options.goal.size = parse_bytes(flags.size);
  if (!flags.throughput.empty()) options.goal.throughput = parse_rate(flags.throughput);
  if (!flags.first_answer.empty()) options.goal.first_answer = parse_duration(flags.first_answer);
  if (!flags.max_loss.empty()) options.goal.max_loss = parse_fraction(flags.max_loss);
  if (!flags.precision.empty()) options.precision = parse_target_precision(flags.precision);
  options.seconds = parse_duration(flags.time);
  options.batch = flags.batch;
  options.threads = flags.threads;
  options.seed = flags.seed;
  options.model_name = flags.model;
  options.keep_steps = flags.keep_steps;
  options.front = flags.front;
  options.effort = read_effort(flags.lower);
  options.forced = read_forced(flags.lower);
  options.command = "lissome optimize";
  for (const std::string& argument : arguments) options.command += " " + quote_for_shell(argument);
  if (!is_utf8(options.command)) options.command = options.model_name = "(names that are not UTF-8)";
  return options;
}

// If a better model cannot be written, the search continues: the one before stays, and at the end there may be room. If
// not even the original can be written, an interrupt could deliver nothing, so this throws.
void keep_so_far(BestSoFar& best, const Optimized& so_far, bool better, const Console& console) {
  try {
    best.keep(so_far, better);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io || !best.keeps_any()) throw;
    check_mappings();
    console.say("note: the best model so far was not written: " + error.message());
  }
}

}  // namespace

int run_optimize(const std::vector<std::string>& arguments, Console& console) {
  const Stopwatch watch;
  OptimizeFlags flags;
  read_flags(flags, arguments);
  OptimizeOptions options = make_options(flags, arguments);
  check_writable(flags.output);
  check_writable(flags.report);
  refuse_overwriting({flags.output, flags.report}, flags.model, {flags.data});
  if (!flags.pick.empty()) {
    if (flags.front.empty()) throw_error(ErrorKind::usage, "--pick needs --front, the folder of an earlier search");
    pick_point(flags.front, flags.pick, flags.model, flags.output, flags.json, console);
    return 0;
  }
  if (!flags.keep_steps.empty()) mkdir(flags.keep_steps.c_str(), 0777);
  const Program program = open_program(flags.model);
  for (const std::string& note : describe_eval_form(program)) console.say("note: " + note);
  std::optional<Dataset> data;
  if (!flags.data.empty()) {
    data = fit_dataset(load_dataset(flags.data, {.labels = flags.labels}), describe_inputs(program));
    for (const std::string& note : data->notes) console.say("note: " + note);
  }
  if (!data) console.say("note: without --data, only exact steps are tried, on generated inputs");
  if (data && options.precision.value_or(Dtype::i8) == Dtype::i8) {
    const std::string slow = explain_int8_without_vnni();
    if (!slow.empty()) console.say("note: " + slow);
  }
  BestSoFar best({flags.output, read_contents(flags.keep_original), flags.report, flags.json}, console);
  options.on_step = [&](const Optimized& so_far, bool better) { keep_so_far(best, so_far, better, console); };
  const auto promise = console.promise(0, [&] {
    if (!best.publish(kWaitForFirst)) console.say("note: the original had not run yet, so nothing was written");
  });
  options.seconds = std::max(options.seconds - watch.seconds(), 0.0);  // --time counts from the start
  const Optimized optimized = optimize(program, data ? &*data : nullptr, options, console.control());
  best.keep(optimized, true);
  best.publish(0);
  return optimized.met ? 0 : exit_code(ErrorKind::over_budget);
}

}  // namespace lissome
