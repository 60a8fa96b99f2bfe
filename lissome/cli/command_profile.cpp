// lissome profile: where the time goes, by node and by module, in the user's words.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/interrupt.h"
#include "lissome/cli/model.h"
#include "lissome/cli/profile.h"

namespace lissome {
namespace {

struct ProfileFlags {
  std::string model, trace;
  CallFlags call;
  int warmup = 10, runs = 50;
  bool explain = false, json = false;
};

bool read_flags(ProfileFlags& to, const std::vector<std::string>& arguments) {
  Flags flags("profile", "Time, memory and kernel of every node and module.");
  flags.require("MODEL", to.model, ".lissome or .pt2");
  add_call_flags(flags, to.call);
  flags.add("--warmup", to.warmup, "untimed calls", 0);
  flags.add("--runs", to.runs, "timed calls; means over the quieter half are printed", 1);
  flags.add("--trace", to.trace, "write a Chrome trace (chrome://tracing, Perfetto) of the last call");
  flags.add("--explain", to.explain, "by node: share of the machine's limit, and why other kernels were not taken");
  flags.add("--json", to.json, "print the result as JSON");
  return flags.parse(arguments);
}

Table make_node_table(const Profile& profile, double sum) {
  Table table{"Nodes",
              {{"node", ""},
               {"op", ""},
               {"kernel", ""},
               {"time", "s"},
               {"share", "%"},
               {"bytes", "B"},
               {"module", ""},
               {"source", ""},
               {"code", ""}},
              {}};
  for (const NodeTime& node : profile.nodes) {
    const double seconds = node.typical;
    table.rows.push_back({node.origin.node, node.origin.op, node.kernel, seconds, seconds / sum,
                          static_cast<double>(node.bytes), node.origin.module, node.origin.source, node.origin.code});
  }
  return table;
}

// Time by module and by each module around it: a text tree, children indented.
Table make_module_table(const Profile& profile, double sum) {
  std::map<std::string, double> seconds;
  for (const NodeTime& node : profile.nodes) {
    const double time = node.typical;
    for (size_t end = node.origin.module.find('.');; end = node.origin.module.find('.', end + 1)) {
      const std::string prefix = node.origin.module.substr(0, end);
      if (!prefix.empty()) seconds[prefix] += time;
      if (end == std::string::npos) break;
    }
  }
  Table table{"Modules", {{"module", ""}, {"time", "s"}, {"share", "%"}}, {}};
  for (const auto& [module, time] : seconds) {
    const auto depth = static_cast<size_t>(std::count(module.begin(), module.end(), '.'));
    const std::string name = module.substr(module.rfind('.') + 1);
    table.rows.push_back({std::string(2 * depth, ' ') + name, time, time / sum});
  }
  return table;
}

}  // namespace

int run_profile(const std::vector<std::string>& arguments, Console& console) {
  ProfileFlags flags;
  if (!read_flags(flags, arguments)) return 0;
  if (!flags.trace.empty()) sweep_temporary_files_beside(flags.trace);
  Session session(open_plan(flags.model, flags.call.threads, flags.call.device), {.threads = flags.call.threads});
  const std::vector<NamedArray> inputs =
      choose_inputs(session.plan(), flags.call.input, flags.call.batch, flags.call.seed, nullptr);
  const std::vector<TensorView> views = view_arrays(inputs);
  const auto promise = console.promise(kGraceSeconds, {});  // means over the calls so far, where none takes longer
  const Profile profile = measure_nodes(session, views, flags.warmup, flags.runs);
  double sum = 0;
  for (const NodeTime& node : profile.nodes) sum += node.typical;
  if (!flags.trace.empty()) write_file(flags.trace, print_chrome_trace(profile.spans));

  const std::string other = describe_other_machine(session.plan().machine, session.threads());
  const Table nodes = make_node_table(profile, sum), modules = make_module_table(profile, sum);
  const MemoryFacts memory = session.memory();
  Table explained;
  if (flags.explain) {
    explained = explain_nodes(session.plan(), profile, find_peaks(session.threads()), memory.weights + memory.arena);
  }
  if (flags.json) {
    Json json{{"seconds", profile.whole},    {"seconds_with_clocks", profile.with_clocks},
              {"sum_of_nodes", sum},         {"weights", memory.weights},
              {"arena", memory.arena},       {"prepacked", memory.reference},
              {"modules", to_json(modules)}, {"nodes", to_json(nodes)}};
    if (flags.explain) json["explained"] = to_json(explained);
    if (flags.explain) json["other_machine"] = other;
    console.print(print_json(json) + "\n");
  } else {
    console.print(render_table(modules, console.terminal()) + "\n" +
                  render_table(flags.explain ? explained : nodes, console.terminal()) + "\none call " +
                  format_duration(profile.whole) + ", while timed " + format_duration(profile.with_clocks) +
                  ", sum of nodes " + format_duration(sum) + " (" + format_percent(sum / profile.with_clocks) +
                  "); weights " + format_bytes(memory.weights) + ", arena " + format_bytes(memory.arena) + "\n");
  }
  return Console::interrupted() ? 130 : 0;
}

}  // namespace lissome
