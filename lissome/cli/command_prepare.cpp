// lissome prepare: what needs neither data nor search.
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/program_file.h"
#include "lissome/lower.h"
#include "lissome/pass.h"

namespace lissome {

int run_prepare(const std::vector<std::string>& arguments, Console& console) {
  CLI::App app("Eval form, folded, fused, laid out, saved. Exact up to rounding; no data, no search.", "prepare");
  std::string model, output;
  std::vector<std::string> disabled;
  int threads = 0;
  bool json = false, diff = false;
  app.add_option("MODEL", model, ".pt2 or .lissome")->required();
  app.add_option("-o,--output", output, "the finished model, a .lissome")->required();
  app.add_option("--disable", disabled, "passes to leave out, by name");
  app.add_option("--threads", threads, "0: all that this process may use")->check(CLI::Range(0, 1024));
  app.add_flag("--diff", diff, "print what each pass changed");
  app.add_flag("--json", json, "print the result as JSON");
  if (!parse_flags(app, arguments)) return 0;

  PipelineOptions pipeline;
  pipeline.disabled = disabled;
  std::vector<PassResult> results;
  const Program program = prepare_inference(open_program(model), pipeline, &results);
  LowerOptions lowering;
  lowering.effort = Effort::fast;
  lowering.threads = threads;
  save_prepared(program, lower_program(program, lowering), output);

  Table table{"Passes", {{"pass", ""}, {"rewrites", ""}, {"took", "s"}}, {}};
  for (const PassResult& result : results) {
    if (result.rewrites > 0) table.rows.push_back({result.name, static_cast<double>(result.rewrites), result.seconds});
    if (diff && !result.diff.empty()) console.print("-- " + result.name + "\n" + result.diff + "\n");
  }
  console.print(json ? to_json(table).dump() + "\n" : render_table(table, console.terminal()) + "\nwritten to " + output + "\n");
  return 0;
}

}  // namespace lissome
