// lissome run: arrays in, arrays out.
#include <charconv>
#include <cstdio>
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

// "sequence=32,64,128" and, of each input, "input_ids=0".
BucketOptions read_buckets(const std::string& buckets, const std::vector<std::string>& pads) {
  const auto cut = [](const std::string& text, const char* form) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      throw_error(ErrorKind::usage, form, ", not ", quote(text));
    return std::pair(text.substr(0, equals), text.substr(equals + 1));
  };
  const auto read_number = [](const std::string& text, auto number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      throw_error(ErrorKind::usage, "--buckets and --pad: ", quote(text), " is no number");
    return number;
  };
  BucketOptions options;
  const auto [dimension, sizes] = cut(buckets, "--buckets is DIMENSION=SIZE,SIZE,..., such as sequence=32,64,128");
  options.dimension = dimension;
  for (const std::string& size : split(sizes, ',')) options.sizes.push_back(read_number(size, int64_t{0}));
  for (const std::string& pad : pads) {
    const auto [input, value] = cut(pad, "--pad is INPUT=NUMBER, such as attention_mask=0");
    options.pads[input] = read_number(value, 0.0);
  }
  return options;
}

// Proved on these very inputs, then run.
std::vector<NamedArray> run_bucketed(Session session, const BucketOptions& options, std::span<const NamedArray> inputs,
                                     const Console& console) {
  const std::vector<TensorView> views = session.order_inputs(inputs);
  BucketedSession bucketed(std::move(session), options, views);
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", bucketed.seen_difference());
  console.say("note: padded up to the buckets, answers differ by " + std::string(text) +
              " of their largest element at most");
  std::vector<NamedArray> outputs;
  for (Array& array : bucketed.run(views))
    outputs.push_back({bucketed.session().plan().outputs[outputs.size()].name, std::move(array)});
  return outputs;
}

}  // namespace

int run_run(const std::vector<std::string>& arguments, Console& console) {
  Flags flags("run", "Runs a model on arrays from a file.");
  std::string model, input, output, memory, buckets, device = "cpu";
  std::vector<std::string> pads;
  int threads = 0;
  bool json = false;
  flags.require("MODEL", model, ".lissome or .pt2");
  flags.require("--input", input, ".npz or .npy: arrays by name, or in order");
  flags.add("--output", output, "where the outputs go, an .npz; default: only their sizes are printed");
  flags.add("--threads", threads, "0: those that the model was made for", 0, kMostThreads);
  flags.add("--device", device, kDeviceHelp);
  add_memory_flag(flags, memory);
  flags.add("--buckets", buckets,
            "DIMENSION=SIZE,SIZE,... (or INPUT.1=...): inputs are padded up to the next of these sizes and outputs cut "
            "back, once the "
            "answers are shown to be the same on these inputs");
  flags.add("--pad", pads, "INPUT=NUMBER: what fills the new places, for every input with that dimension");
  flags.add("--json", json, "print the result as JSON");
  if (!flags.parse(arguments)) return 0;

  Session session(open_plan(model, threads, device), {.threads = threads, .memory = read_memory(memory)});
  std::vector<std::string> notes;
  const std::vector<NamedArray> inputs = choose_inputs(session.plan(), input, 1, 0, &notes);
  for (const std::string& note : notes) console.say("note: " + note);
  const std::vector<NamedArray> outputs =
      buckets.empty() ? session.run(inputs)
                      : run_bucketed(std::move(session), read_buckets(buckets, pads), inputs, console);
  if (const StreamFacts stream = buckets.empty() ? session.stream() : StreamFacts{}; stream.streamed > 0)
    console.say("note: " + describe_stream(stream));
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
