// lissome run: arrays in, arrays out.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/model.h"
#include "lissome/cli/session_flags.h"

namespace lissome {
namespace {

Table list_outputs(const std::vector<NamedArray>& outputs) {
  Table table{"", {{"output", ""}, {"dtype", ""}, {"sizes", ""}}, {}};
  for (const NamedArray& output : outputs) {
    table.rows.push_back({output.name, std::string(dtype_name(output.array.dtype)), format_sizes(output.array.sizes)});
  }
  return table;
}

std::vector<NamedArray> name_outputs(const Plan& plan, std::vector<Array> arrays) {
  std::vector<NamedArray> outputs;
  for (Array& array : arrays) outputs.push_back({plan.outputs[outputs.size()].name, std::move(array)});
  return outputs;
}

void tell_cost(const AskedSession& session, const Console& console) {
  if (const std::optional<double> difference = session.seen_difference()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g", *difference);
    console.say("note: padded up to the buckets, answers differ by " + std::string(text) +
                " of their largest element at most");
  }
  if (const StreamFacts stream = session.session().stream(); stream.streamed > 0)
    console.say("note: " + describe_stream(stream));
}

}  // namespace

int run_run(const std::vector<std::string>& arguments, Console& console) {
  Flags flags("run", "Runs a model on arrays from a file.");
  std::string model, input, output, device = "cpu";
  SessionFlags asked;
  int threads = 0;
  bool json = false;
  flags.require("MODEL", model, ".lissome or .pt2");
  flags.require("--input", input, ".npz or .npy: arrays by name, or in order");
  flags.add("--output", output, "where the outputs go, an .npz; default: only their sizes are printed");
  flags.add("--threads", threads, "0: those that the model was made for", 0, kMostThreads);
  flags.add("--device", device, kDeviceHelp);
  add_session_flags(flags, asked);
  flags.add("--json", json, "print the result as JSON");
  if (!flags.parse(arguments)) return 0;

  const std::shared_ptr<const Plan> plan = open_plan(model, threads, device);
  std::vector<std::string> notes;
  const std::vector<NamedArray> inputs = choose_inputs(*plan, input, 1, 0, &notes);
  for (const std::string& note : notes) console.say("note: " + note);
  const std::string other = describe_other_machine(plan->machine, std::min(plan->machine.threads, usable_threads()));
  if (!other.empty()) console.say("note: " + other);
  const std::vector<TensorView> views = view_arrays(inputs);
  AskedSession session(plan, threads, asked, views);
  const std::vector<NamedArray> outputs = name_outputs(*plan, session.run(views));
  tell_cost(session, console);
  std::vector<NamedArray> stored;
  for (const NamedArray& named : outputs) {
    if (named.array.storage != nullptr) stored.push_back(named);
  }
  if (!output.empty()) save_arrays(output, stored);
  const Table table = list_outputs(stored);
  console.print(json ? print_json(to_json(table)) + "\n" : render_table(table, console.terminal()));
  return 0;
}

}  // namespace lissome
