// lissome budget: how a model trains inside so much memory. What each module keeps and makes again, what a step will
// take and how long, and the same as it came true.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/example_data.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/pass_diffs.h"
#include "lissome/cli/program_file.h"
#include "lissome/cli/train_words.h"
#include "lissome/compare.h"
#include "lissome/train.h"

namespace lissome {
namespace {

struct BudgetFlags {
  std::string model, data, labels, loss = "cross_entropy", optimizer = "adamw", memory, recompute = "auto",
                                   precision = "f32", batch = "32", transforms, offload;
  int threads = 0;
  std::vector<std::string> disabled;
  bool update_in_backward = false, lossy_activations = false, diff = false, json = false;
};

bool read_flags(BudgetFlags& to, const std::vector<std::string>& arguments) {
  Flags flags(
      "budget",
      "How a model trains inside a memory budget: what each module keeps for the backward pass and what it makes "
      "again, told and measured.");
  flags.require("MODEL", to.model, kModelHelp);
  flags.require("--memory", to.memory, kTrainMemoryHelp);
  flags.add("--data", to.data, std::string(kDataHelp) + "; default: generated, of the sizes of the export");
  flags.add("--labels", to.labels, kLabelsHelp);
  flags.add("--transforms", to.transforms, kTransformsHelp);
  flags.add("--loss", to.loss, kLossHelp);
  flags.add("--optimizer", to.optimizer, kOptimizerHelp);
  flags.add("--batch", to.batch, kStepBatchHelp, "N");
  flags.add("--recompute", to.recompute, kRecomputeHelp);
  flags.add("--lossy-activations", to.lossy_activations, kLossyHelp);
  flags.add("--offload", to.offload, kOffloadHelp);
  flags.add("--update-in-backward", to.update_in_backward, kUpdateHelp);
  flags.add("--disable", to.disabled, kDisableHelp);
  flags.add("--diff", to.diff, kDiffHelp);
  flags.add("--precision", to.precision, kTrainPrecisionHelp);
  flags.add("--threads", to.threads, kOwnThreadsHelp, 0, kMostThreads);
  flags.add_json(to.json);
  return flags.parse(arguments);
}

TrainOptions make_options(const BudgetFlags& flags, const Program& model) {
  TrainOptions options;
  options.loss = parse_loss(flags.loss, model);
  options.optimizer = find_optimizer(flags.optimizer);
  options.batch = parse_batch(flags.batch);
  if (options.batch == 0)
    throw_error(ErrorKind::usage, "--batch auto is for lissome train; a budget is that of a number of samples");
  options.memory = parse_bytes(flags.memory);
  options.recompute = parse_recompute(flags.recompute);
  options.precision = parse_precision(flags.precision);
  if (!options.precision)
    throw_error(ErrorKind::usage, "--precision auto is for lissome train; a budget is that of f32, bf16 or fp16");
  options.update_in_backward = flags.update_in_backward;
  options.lossy_activations = flags.lossy_activations;
  check_training_passes(flags.disabled);
  options.disabled_passes = flags.disabled;
  options.offload = flags.offload;
  options.batches.transforms = flags.transforms;
  options.threads = flags.threads;
  return options;
}

Table make_module_table(const BudgetTrial& found) {
  Table table{"Modules", {{"module", ""}, {"kept", "B"}, {"made again", "B"}, {"takes", "s"}}, {}};
  for (const ModuleForecast& row : found.told.modules) {
    if (row.kept == 0 && row.again == 0 && row.again_seconds == 0) continue;
    table.rows.push_back(
        {row.module, static_cast<double>(row.kept), static_cast<double>(row.again), row.again_seconds});
  }
  return table;
}

Table make_memory_table(const BudgetTrial& found) {
  Table table{"Memory", {{"what", ""}, {"keeping all", "B"}, {"told", "B"}, {"measured", "B"}}, {}};
  const auto add = [&](const std::string& what, int64_t plain, int64_t told, int64_t measured) {
    table.rows.push_back({what, static_cast<double>(plain), static_cast<double>(told), static_cast<double>(measured)});
  };
  const auto add_same = [&](const std::string& what, int64_t bytes) { add(what, bytes, bytes, bytes); };
  add("weights", found.fixed.weights + found.fixed.saved(), found.fixed.weights, found.weights_measured);
  add_same("gradients", found.fixed.gradients);
  add_same("optimizer states", found.fixed.states);
  add_same("batch", found.batch_bytes);
  add("activations and scratch", found.told.plain.total(), found.told.chosen.total(), found.measured.total());
  add("all", found.keeping_all(), found.all_told(), found.all_measured());
  return table;
}

std::string describe_stored(const StepForecast& told) {
  std::string text;
  if (told.stored_lossy > 0) text += ", " + std::to_string(told.stored_lossy) + " activations wait in bf16";
  if (told.offloaded == 0) return text;
  return text + ", " + std::to_string(told.offloaded) + " activations of " + format_bytes(told.offloaded_bytes) +
         " wait in a file";
}

void print(const BudgetTrial& found, const BudgetFlags& flags, Console& console) {
  const Table memory = make_memory_table(found), modules = make_module_table(found);
  if (flags.json) {
    const Json result{{"memory", found.memory},
                      {"schedule", found.told.method},
                      {"nodes_run_again", found.told.runs_again},
                      {"activations_in_bf16", found.told.stored_lossy},
                      {"activations_in_file", found.told.offloaded},
                      {"activations_in_file_bytes", found.told.offloaded_bytes},
                      {"weights_in_file_bytes", found.fixed.waiting},
                      {"weights_in_memory_at_once_bytes", found.fixed.waiting_at_once},
                      {"seconds_told", found.told.seconds},
                      {"seconds_told_keeping_all", found.told.plain_seconds},
                      {"seconds_measured", found.seconds.median},
                      {"diff", flags.diff ? list_diffs(found.passes) : Json()}};
    const Table tables[] = {memory, modules};
    return console.print(print_answer("budget", result, tables));
  }
  if (flags.diff) console.print(describe_diffs(found.passes));
  const std::string waiting = found.fixed.waiting > 0 ? ", " + describe_waiting(found.fixed) : "";
  console.print(render_table(memory, console.terminal()) + "\n" + render_table(modules, console.terminal()) +
                "\nschedule: " + found.told.method + ", " + std::to_string(found.told.runs_again) + " nodes run again" +
                describe_stored(found.told) + waiting + ". One step was told to take " +
                format_duration(found.told.seconds) + " (" + format_duration(found.told.plain_seconds) +
                " keeping all), measured " + format_duration(found.seconds.median) + "\n");
}

}  // namespace

int run_budget(const std::vector<std::string>& arguments, Console& console) {
  BudgetFlags flags;
  if (!read_flags(flags, arguments)) return 0;
  check_offload_folder(flags.offload);
  const Program model = open_program(flags.model);
  const TrainOptions options = make_options(flags, model);
  if (flags.data.empty())
    console.say(
        "note: without --data, inputs are generated; sizes that vary are 16, or the nearest that the model takes");
  const Dataset found =
      flags.data.empty() ? make_example_data(model, options.loss) : load_dataset(flags.data, {.labels = flags.labels});
  const Dataset data = fit_batches(found, describe_inputs(model), options.batches);
  for (const std::string& note : data.notes) console.say("note: " + note);
  if (data.samples() == 0) throw_error(ErrorKind::invalid_input, data.source, ": there are no samples");
  const BudgetTrial trial = try_budget(model, data, options);
  if (!trial.notice.empty()) console.say("note: " + trial.notice);
  print(trial, flags, console);
  return 0;
}

}  // namespace lissome
