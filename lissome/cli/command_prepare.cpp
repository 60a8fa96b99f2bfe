// lissome prepare: makes a model faster by steps that need neither data nor search.
#include <ATen/core/ivalue.h>

#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/lower_flags.h"
#include "lissome/cli/pass_diffs.h"
#include "lissome/cli/program_file.h"
#include "lissome/cli/writable.h"
#include "lissome/compare.h"
#include "lissome/data.h"
#include "lissome/lower.h"
#include "lissome/pass.h"

namespace lissome {

int run_prepare(const std::vector<std::string>& arguments, Console& console) {
  Flags flags(
      "prepare",
      "Makes the eval form of a model, folds, fuses and lays out its ops, and saves it. Results are exact up to "
      "rounding. It needs no data and searches nothing.");
  std::string model, output, input;
  std::vector<std::string> disabled;
  LowerFlags lower{.effort = "fast", .kernels = {}};
  int threads = 0;
  bool json = false, diff = false, keep_original = false;
  flags.require("MODEL", model, kModelHelp);
  flags.require("-o,--output", output, kModelOutputHelp);
  flags.add("--disable", disabled, kDisableHelp);
  flags.add("--input", input, kInputHelp);
  flags.add("--threads", threads, kOwnThreadsHelp, 0, kMostThreads);
  add_lower_flags(flags, lower);
  add_contents_flag(flags, keep_original);
  flags.add("--diff", diff, kDiffHelp);
  flags.add_json(json);
  if (!flags.parse(arguments)) return 0;

  check_writable(output);
  refuse_overwriting(output, model, {input});
  LowerOptions lowering;
  lowering.effort = read_effort(lower);
  lowering.forced = read_forced(lower);
  lowering.threads = threads;
  PipelineOptions pipeline;
  pipeline.disabled = disabled;
  std::vector<PassResult> results;
  const Program original = open_program(model);
  if (original.training) console.say(kEvalFormNote);
  const Program program = prepare_inference(original, pipeline, &results);
  std::vector<NamedArray> example;  // the tensors of `lowering` share its memory
  if (!input.empty()) {
    std::vector<std::string> notes;
    example = fit_inputs(load_arrays(input), describe_inputs(program), input, &notes);
    for (const std::string& note : notes) console.say("note: " + note);
    lowering.inputs = to_ivalues(example);
  } else if (lowering.effort != Effort::fast && !program.dimensions.empty()) {
    console.say("note: kernels are timed at the smallest dynamic sizes; give --input to time them at other sizes");
  }
  const Plan plan = lower_program(program, lowering);
  std::vector<std::string> notes = list_lowering_notes(plan, lower);
  for (const LargerForm& form : list_larger_forms(plan)) notes.push_back(describe_larger_form(form));
  for (const std::string& note : notes) console.say("note: " + note);
  save_prepared(program, plan, output, read_contents(keep_original));

  Table table{"Passes", {{"pass", ""}, {"rewrites", ""}, {"took", "s"}}, {}};
  for (const PassResult& result : results) {
    if (result.rewrites > 0) table.rows.push_back({result.name, static_cast<double>(result.rewrites), result.seconds});
  }
  if (json) {
    const Json result{
        {"model", model}, {"output", output}, {"notes", notes}, {"diff", diff ? list_diffs(results) : Json()}};
    console.print(print_answer("prepare", result, {&table, 1}));
    return 0;
  }
  if (diff) console.print(describe_diffs(results));
  console.print(render_table(table, console.terminal()) + "\nwritten to " + output + "\n");
  return 0;
}

}  // namespace lissome
