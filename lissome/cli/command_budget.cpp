// lissome budget: shows how a model trains inside a memory budget: the values that each module keeps and recomputes,
// and the memory and time of a step, predicted and measured.
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
  LossFlags loss;
  std::string model, data, labels, optimizer = "adamw", memory, recompute = "auto", precision = "f32", batch = "32",
                                   transforms, offload;
  int threads = 0;
  std::vector<std::string> disabled;
  bool update_in_backward = false, lossy_activations = false, diff = false, json = false;
};

void read_flags(BudgetFlags& to, const std::vector<std::string>& arguments) {
  Flags flags("budget",
              "Shows how a model trains inside a memory budget: the activations that each module keeps for the "
              "backward pass and those that it recomputes, and the memory and time of a step, predicted and "
              "measured. Without --data, inputs of the sizes of the export are generated.");
  flags.require("MODEL", to.model, kModelHelp);
  flags.require("--memory", to.memory, kTrainMemoryHelp);
  flags.add("--data", to.data, kDataHelp);
  flags.add("--labels", to.labels, kLabelsHelp);
  flags.add("--transforms", to.transforms, kTransformsHelp);
  add_loss_flags(flags, to.loss);
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
  flags.parse(arguments);
}

TrainOptions make_options(const BudgetFlags& flags, const Program& model) {
  TrainOptions options;
  options.loss = make_loss(flags.loss, model);
  options.optimizer = find_optimizer(flags.optimizer);
  options.batch = parse_batch(flags.batch);
  if (options.batch == 0)
    throw_error(ErrorKind::usage, "--batch auto is for lissome train only; give lissome budget a number of samples");
  options.memory = parse_bytes(flags.memory);
  options.recompute = parse_recompute(flags.recompute);
  options.precision = parse_precision(flags.precision);
  if (!options.precision)
    throw_error(ErrorKind::usage, "--precision auto is for lissome train only; give lissome budget f32, bf16 or fp16");
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
  Table table{"Modules", {{"module", ""}, {"kept", "B"}, {"recomputed", "B", false, "made again"}, {"takes", "s"}}, {}};
  for (const ModuleForecast& row : found.predicted.modules) {
    if (row.kept == 0 && row.recomputed == 0 && row.recompute_seconds == 0) continue;
    table.rows.push_back(
        {row.module, static_cast<double>(row.kept), static_cast<double>(row.recomputed), row.recompute_seconds});
  }
  return table;
}

Table make_memory_table(const BudgetTrial& found) {
  Table table{"Memory", {{"what", ""}, {"keeping all", "B"}, {"predicted", "B", false, "told"}, {"measured", "B"}}, {}};
  const auto add = [&](const std::string& what, int64_t plain, int64_t predicted, int64_t measured) {
    table.rows.push_back(
        {what, static_cast<double>(plain), static_cast<double>(predicted), static_cast<double>(measured)});
  };
  const auto add_same = [&](const std::string& what, int64_t bytes) { add(what, bytes, bytes, bytes); };
  add("weights", found.fixed.weights + found.fixed.saved(), found.fixed.weights, found.weights_measured);
  add_same("gradients", found.fixed.gradients);
  add_same("optimizer states", found.fixed.states);
  if (found.fixed.update > 0) add_same("update of the largest weight", found.fixed.update);
  add_same("batch", found.batch_bytes);
  add_same("rounding", found.fixed.rounding);
  add("activations and scratch", found.predicted.plain.total(), found.predicted.chosen.total(), found.measured.total());
  add("all", found.keeping_all(), found.all_predicted(), found.all_measured());
  return table;
}

std::string describe_stored(const StepForecast& predicted) {
  std::string text;
  if (predicted.stored_lossy > 0)
    text += ", " + std::to_string(predicted.stored_lossy) + " activations are kept in bf16";
  if (predicted.offloaded == 0) return text;
  return text + ", " + std::to_string(predicted.offloaded) + " activations of " +
         format_bytes(predicted.offloaded_bytes) + " are kept in a file";
}

void print(const BudgetTrial& found, const BudgetFlags& flags, Console& console) {
  const Table memory = make_memory_table(found), modules = make_module_table(found);
  if (flags.json) {
    Json result{{"memory", found.memory},
                {"schedule", found.predicted.method},
                {"nodes_recomputed", found.predicted.recomputed_nodes},
                {"activations_in_bf16", found.predicted.stored_lossy},
                {"activations_in_file", found.predicted.offloaded},
                {"activations_in_file_bytes", found.predicted.offloaded_bytes},
                {"weights_in_file_bytes", found.fixed.offloaded},
                {"weights_in_memory_at_once_bytes", found.fixed.offloaded_at_once},
                {"seconds_predicted", found.predicted.seconds},
                {"seconds_predicted_keeping_all", found.predicted.plain_seconds},
                {"seconds_measured", found.seconds.median},
                {"diff", flags.diff ? list_diffs(found.passes) : Json()}};
    repeat_old_key(result, "nodes_recomputed", "nodes_run_again");
    repeat_old_key(result, "seconds_predicted", "seconds_told");
    repeat_old_key(result, "seconds_predicted_keeping_all", "seconds_told_keeping_all");
    const Table tables[] = {memory, modules};
    return console.print(print_answer("budget", result, tables));
  }
  if (flags.diff) console.print(describe_diffs(found.passes));
  const std::string offloaded = found.fixed.offloaded > 0 ? ", " + describe_offloaded(found.fixed) : "";
  console.print(render_table(memory, console.terminal()) + "\n" + render_table(modules, console.terminal()) +
                "\nschedule: " + found.predicted.method + ", " + std::to_string(found.predicted.recomputed_nodes) +
                " nodes are recomputed" + describe_stored(found.predicted) + offloaded +
                ". A step is predicted to take " + format_duration(found.predicted.seconds) + " (" +
                format_duration(found.predicted.plain_seconds) + " keeping all) and was measured to take " +
                format_duration(found.seconds.median) + "\n");
}

}  // namespace

int run_budget(const std::vector<std::string>& arguments, Console& console) {
  BudgetFlags flags;
  read_flags(flags, arguments);
  check_offload_folder(flags.offload);
  const Program model = open_program(flags.model);
  TrainOptions options = make_options(flags, model);
  options.callbacks.on_planning = console.control().on_progress;
  if (flags.data.empty())
    console.say(
        "note: without --data, inputs are generated; dynamic sizes that no flag sets are 16, or the nearest size that "
        "the model takes");
  const Dataset found =
      flags.data.empty() ? make_example_data(model, options.loss) : load_dataset(flags.data, {.labels = flags.labels});
  const Dataset data = fit_batches(found, describe_inputs(model), options.batches);
  for (const std::string& note : data.notes) console.say("note: " + note);
  if (data.samples() == 0) throw_error(ErrorKind::invalid_input, data.source, ": there are no samples");
  const BudgetTrial trial = try_budget(model, data, options);
  if (!trial.notice.empty()) console.say("note: " + trial.notice);
  print(trial, flags, console);
  if (trial.memory > 0 && trial.all_measured() > trial.memory) {
    console.say("note: the step was measured to take " + format_bytes(trial.all_measured()) + ", more than the " +
                format_bytes(trial.memory) + " of --memory; give that much where the limit must hold");
  }
  return 0;
}

}  // namespace lissome
