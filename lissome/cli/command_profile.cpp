// lissome profile: shows where the time goes, by node and by module.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/interrupt.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/model.h"
#include "lissome/cli/profile/profile.h"
#include "lissome/cli/writable.h"

namespace lissome {
namespace {

struct ProfileFlags {
  std::string model, trace;
  CallFlags call;
  int warmup = 10, runs = 100;
  bool explain = false, json = false;
};

void read_profile_flags(ProfileFlags& to, const std::vector<std::string>& arguments) {
  Flags flags("profile",
              "Shows time, memory and kernel of every node and module, as means over the faster half of the calls.");
  flags.require("MODEL", to.model, kModelHelp);
  add_call_flags(flags, to.call);
  flags.add("--warmup", to.warmup, kWarmupHelp, 0);
  flags.add("--runs", to.runs, kRunsHelp, 1);
  flags.add("--trace", to.trace, "File for a Chrome trace (chrome://tracing, Perfetto) of the last call.");
  flags.add("--explain", to.explain,
            "Show for each node its share of the machine's limit, and why other kernels were not chosen.");
  flags.add_json(to.json);
  flags.parse(arguments);
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

// Time of each module, its submodules included.
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
  for (const auto& [module, time] : seconds) table.rows.push_back({module, time, time / sum});
  return table;
}

// Names for people: a tree with indented children, each with the last part of its name.
Table indent_modules(Table table) {
  for (auto& row : table.rows) {
    auto& module = std::get<std::string>(row.front());
    const auto depth = static_cast<size_t>(std::count(module.begin(), module.end(), '.'));
    module = std::string(2 * depth, ' ') + module.substr(module.rfind('.') + 1);
  }
  return table;
}

Json list_facts(const Session& session, const Profile& profile, double sum) {
  const MemoryFacts memory = session.memory();
  return {{"one_call", profile.whole},
          {"while_timed", profile.with_clocks},
          {"sum_of_nodes", sum},
          {"weights", memory.weights},
          {"arena", memory.arena},
          {"prepacked", memory.reference},
          {"threads", session.threads()},
          {"other_machine", or_null(describe_other_machine(session.plan().machine, session.threads()))},
          {"interrupted", Console::interrupted()}};
}

}  // namespace

int run_profile(const std::vector<std::string>& arguments, Console& console) {
  ProfileFlags flags;
  read_profile_flags(flags, arguments);
  check_writable(flags.trace);
  refuse_overwriting({flags.trace}, flags.model, {flags.call.input});
  Session session(open_plan(flags.model, flags.call.threads, flags.call.device), {.threads = flags.call.threads});
  const std::vector<NamedArray> inputs =
      choose_inputs(session.plan(), flags.call.input, flags.call.batch, flags.call.seed, say_notes(console));
  const std::vector<TensorView> views = view_arrays(inputs);
  const auto promise = console.promise(kGraceSeconds, {});  // means over the calls so far, unless a call takes longer
  const Profile profile = measure_nodes(session, views, flags.warmup, flags.runs);
  double sum = 0;
  for (const NodeTime& node : profile.nodes) sum += node.typical;
  if (!flags.trace.empty()) write_file(flags.trace, print_chrome_trace(profile.spans));

  const Table nodes = make_node_table(profile, sum), modules = make_module_table(profile, sum);
  const MemoryFacts memory = session.memory();
  Table explained;
  if (flags.explain) {
    const MachinePeaks peaks = find_peaks_of(profile, session.threads());
    explained = explain_nodes(session.plan(), profile, peaks, memory.weights + memory.arena);
  }
  const std::string other = describe_other_machine(session.plan().machine, session.threads());
  if (!other.empty()) console.say("note: " + other);
  if (flags.json) {
    std::vector<Table> tables = {modules, nodes};
    if (flags.explain) tables.push_back(explained);
    console.print(print_answer("profile", list_facts(session, profile, sum), tables));
  } else {
    const std::string prepacked =
        memory.reference > 0 ? ", prepacked " + format_bytes(memory.reference) : std::string();
    console.print(render_table(indent_modules(modules), console.terminal()) + "\n" +
                  render_table(flags.explain ? explained : nodes, console.terminal()) + "\none call " +
                  format_duration(profile.whole) + ", while timed " + format_duration(profile.with_clocks) +
                  ", sum of nodes " + format_duration(sum) + " (" + format_percent(sum / profile.with_clocks) +
                  "); weights " + format_bytes(memory.weights) + ", arena " + format_bytes(memory.arena) + prepacked +
                  "\n");
  }
  return Console::interrupted() ? 130 : 0;
}

}  // namespace lissome
