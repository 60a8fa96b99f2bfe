// lissome prepare: what needs neither data nor search.
#include <ATen/core/ivalue.h>

#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/lower_flags.h"
#include "lissome/cli/program_file.h"
#include "lissome/cli/writable.h"
#include "lissome/compare.h"
#include "lissome/data.h"
#include "lissome/lower.h"
#include "lissome/pass.h"

namespace lissome {

int run_prepare(const std::vector<std::string>& arguments, Console& console) {
  Flags flags("prepare", "Eval form, folded, fused, laid out, saved. Exact up to rounding; no data, no search.");
  std::string model, output, input;
  std::vector<std::string> disabled;
  LowerFlags lower{.effort = "fast", .kernels = {}};
  int threads = 0;
  bool json = false, diff = false;
  flags.require("MODEL", model, ".pt2 or .lissome");
  flags.require("-o,--output", output, "the finished model, a .lissome");
  flags.add("--disable", disabled, "passes to leave out, by name");
  flags.add("--input", input, ".npz or .npy: sizes to time kernels at; default: the smallest that the model takes");
  flags.add("--threads", threads, "0: one for each core that this process may use", 0, kMostThreads);
  add_lower_flags(flags, lower);
  flags.add("--diff", diff, "print what each pass changed");
  flags.add("--json", json, "print the result as JSON");
  if (!flags.parse(arguments)) return 0;

  check_writable(output);
  LowerOptions lowering;
  lowering.effort = read_effort(lower);
  lowering.forced = read_forced(lower);
  lowering.threads = threads;
  PipelineOptions pipeline;
  pipeline.disabled = disabled;
  std::vector<PassResult> results;
  const Program program = prepare_inference(open_program(model), pipeline, &results);
  std::vector<NamedArray> example;  // the tensors of `lowering` share its memory
  if (!input.empty()) {
    std::vector<std::string> notes;
    example = fit_inputs(load_arrays(input), describe_inputs(program), input, &notes);
    for (const std::string& note : notes) console.say("note: " + note);
    lowering.inputs = to_ivalues(example);
  } else if (lowering.effort != Effort::fast && !program.dimensions.empty()) {
    console.say("note: sizes that vary are timed at their smallest; --input tells those that count");
  }
  const Plan plan = lower_program(program, lowering);
  for (const std::string& note : list_lowering_notes(plan, lower)) console.say("note: " + note);
  save_prepared(program, plan, output);

  Table table{"Passes", {{"pass", ""}, {"rewrites", ""}, {"took", "s"}}, {}};
  for (const PassResult& result : results) {
    if (result.rewrites > 0) table.rows.push_back({result.name, static_cast<double>(result.rewrites), result.seconds});
    if (diff && !result.diff.empty()) console.print("-- " + result.name + "\n" + result.diff + "\n");
  }
  console.print(json ? print_json(to_json(table)) + "\n"
                     : render_table(table, console.terminal()) + "\nwritten to " + output + "\n");
  return 0;
}

}  // namespace lissome
