// lissome run: arrays in, arrays out.
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/model.h"

namespace lissome {
namespace {

Table list_outputs(const std::vector<NamedArray>& outputs) {
  Table table{"", {{"output", ""}, {"dtype", ""}, {"sizes", ""}}, {}};
  for (const NamedArray& output : outputs) {
    table.rows.push_back({output.name, std::string(dtype_name(output.array.dtype)), format_sizes(output.array.sizes)});
  }
  return table;
}

}  // namespace

int run_run(const std::vector<std::string>& arguments, Console& console) {
  Flags flags("run", "Runs a model on arrays from a file.");
  std::string model, input, output, memory, device = "cpu";
  int threads = 0;
  bool json = false;
  flags.require("MODEL", model, ".lissome or .pt2");
  flags.require("--input", input, ".npz or .npy: arrays by name, or in order");
  flags.add("--output", output, "where the outputs go, an .npz; default: only their sizes are printed");
  flags.add("--threads", threads, "0: those that the model was made for", 0, kMostThreads);
  flags.add("--device", device, kDeviceHelp);
  add_memory_flag(flags, memory);
  flags.add("--json", json, "print the result as JSON");
  if (!flags.parse(arguments)) return 0;

  Session session(open_plan(model, threads, device), {.threads = threads, .memory = read_memory(memory)});
  std::vector<std::string> notes;
  const std::vector<NamedArray> inputs = choose_inputs(session.plan(), input, 1, 0, &notes);
  for (const std::string& note : notes) console.say("note: " + note);
  const std::vector<NamedArray> outputs = session.run(inputs);
  if (const StreamFacts stream = session.stream(); stream.streamed > 0) console.say("note: " + describe_stream(stream));
  std::vector<NamedArray> stored;
  for (const NamedArray& named : outputs) {
    if (named.array.storage != nullptr) stored.push_back(named);
  }
  if (!output.empty()) save_arrays(output, stored);
  const Table table = list_outputs(stored);
  console.print(json ? to_json(table).dump() + "\n" : render_table(table, console.terminal()));
  return 0;
}

}  // namespace lissome
