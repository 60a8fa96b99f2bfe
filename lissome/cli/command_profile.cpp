// lissome profile: where the time goes, by node and by module, in the user's words.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/model.h"

namespace lissome {
namespace {

struct NodeTime {
  PlanOrigin origin;
  std::string kernel;
  std::vector<double> seconds;  // by run
  int64_t bytes = 0;
  double typical = 0;           // seconds, see average_quiet_runs
};

struct ProfileFlags {
  std::string model, trace;
  CallFlags call;
  int warmup = 10, runs = 50;
  bool json = false;
};

bool read_flags(ProfileFlags& to, const std::vector<std::string>& arguments) {
  Flags flags("profile", "Time, memory and kernel of every node and module.");
  flags.require("MODEL", to.model, ".lissome or .pt2");
  add_call_flags(flags, to.call);
  flags.add("--warmup", to.warmup, "untimed calls", 0);
  flags.add("--runs", to.runs, "timed calls; means over the quieter half are printed", 1);
  flags.add("--trace", to.trace, "write a Chrome trace (chrome://tracing, Perfetto) of the last call");
  flags.add("--json", to.json, "print the result as JSON");
  return flags.parse(arguments);
}

struct Profile {
  std::vector<NodeTime> nodes;
  double whole = 0, with_clocks = 0;  // seconds of one call: as users run it, and while each step is timed
  std::vector<SpanRecord> spans;      // of the last run
};

// Means over the quieter half of the calls: the clock's outliers stay out, and parts add up to the whole, which medians
// would not.
void average_quiet_runs(Profile& profile, const std::vector<double>& with_clocks) {
  std::vector<size_t> runs(with_clocks.size());
  std::iota(runs.begin(), runs.end(), size_t{0});
  std::stable_sort(runs.begin(), runs.end(), [&](size_t a, size_t b) { return with_clocks[a] < with_clocks[b]; });
  runs.resize((runs.size() + 1) / 2);
  const auto average = [&](const std::vector<double>& seconds) {
    double sum = 0;
    for (size_t run : runs) sum += run < seconds.size() ? seconds[run] : 0;
    return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
  };
  for (NodeTime& node : profile.nodes) node.typical = average(node.seconds);
  profile.with_clocks = average(with_clocks);
}

// The last row is what a call does beside its nodes: inputs are checked, outputs made, steps entered, clocks read.
Profile measure(Session& session, const std::vector<TensorView>& views, const ProfileFlags& flags) {
  Profile profile;
  std::map<std::pair<int, std::string>, size_t> places;  // (step, node) -> position in profile.nodes
  std::vector<double> whole, with_clocks;
  NodeTime outside;
  outside.origin.node = "(outside)";
  outside.origin.op = "checks, outputs, clocks";
  outside.kernel = "session";
  for (int i = 0; i < flags.warmup; ++i) session.run(views);
  for (int run = 0; run < flags.runs && !Console::interrupted(); ++run) {
    profile.spans.clear();
    double inside = 0;
    const StepSink sink = [&](const StepTiming& timing) {
      const std::string node = timing.origin != nullptr ? timing.origin->node : std::string();
      const auto [place, fresh] = places.try_emplace({timing.step, node}, profile.nodes.size());
      if (fresh) {
        profile.nodes.push_back({timing.origin != nullptr ? *timing.origin : PlanOrigin{}, std::string(timing.kernel), {}, timing.bytes});
      }
      const double seconds = static_cast<double>(timing.nanoseconds) * 1e-9;
      profile.nodes[place->second].seconds.push_back(seconds);
      inside += seconds;
      profile.spans.push_back({timing.origin != nullptr ? timing.origin->op : "", timing.origin != nullptr ? timing.origin->source : "",
                               now_nanoseconds() - timing.nanoseconds, timing.nanoseconds, 0});
    };
    const Stopwatch clocked;
    session.run(views, &sink);
    with_clocks.push_back(clocked.seconds());
    outside.seconds.push_back(std::max(0.0, with_clocks.back() - inside));
    const Stopwatch plain;
    session.run(views);
    whole.push_back(plain.seconds());
  }
  profile.nodes.push_back(std::move(outside));
  profile.whole = find_percentile(whole, 0.5);
  average_quiet_runs(profile, with_clocks);
  return profile;
}

Table make_node_table(const Profile& profile, double sum) {
  Table table{"Nodes",
              {{"node", ""}, {"op", ""}, {"kernel", ""}, {"time", "s"}, {"share", "%"}, {"bytes", "B"}, {"module", ""}, {"source", ""}, {"code", ""}},
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
  Session session(open_plan(flags.model, flags.call.threads), {.threads = flags.call.threads});
  const std::vector<NamedArray> inputs =
      choose_inputs(session.plan(), flags.call.input, flags.call.batch, flags.call.seed, nullptr);
  std::vector<TensorView> views;
  for (const NamedArray& input : inputs) views.push_back(input.array.view());
  const Profile profile = measure(session, views, flags);
  double sum = 0;
  for (const NodeTime& node : profile.nodes) sum += node.typical;
  if (!flags.trace.empty()) write_file(flags.trace, print_chrome_trace(profile.spans));

  const Table nodes = make_node_table(profile, sum), modules = make_module_table(profile, sum);
  const MemoryFacts memory = session.memory();
  if (flags.json) {
    console.print(Json{{"seconds", profile.whole},
                       {"seconds_with_clocks", profile.with_clocks},
                       {"sum_of_nodes", sum},
                       {"weights", memory.weights},
                       {"arena", memory.arena},
                       {"prepacked", memory.reference},
                       {"modules", to_json(modules)},
                       {"nodes", to_json(nodes)}}
                      .dump() +
                  "\n");
  } else {
    console.print(render_table(modules, console.terminal()) + "\n" + render_table(nodes, console.terminal()) + "\none call " +
                  format_duration(profile.whole) + ", while timed " + format_duration(profile.with_clocks) + ", sum of nodes " +
                  format_duration(sum) + " (" + format_percent(sum / profile.with_clocks) + "); weights " +
                  format_bytes(memory.weights) + ", arena " + format_bytes(memory.arena) + "\n");
  }
  return Console::interrupted() ? 130 : 0;
}

}  // namespace lissome
