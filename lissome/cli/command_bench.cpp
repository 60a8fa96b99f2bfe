// lissome bench: models against each other in one run, rounds interleaved.
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/model.h"
#include "lissome/cli/probe.h"

namespace lissome {
namespace {

struct BenchFlags {
  std::vector<std::string> models;
  std::string probe;
  CallFlags call;
  int warmup = 10, runs = 100;
  bool json = false;
};

bool read_flags(BenchFlags& to, const std::vector<std::string>& arguments) {
  Flags flags("bench", "Times models against each other, in turns; ratios are against the first.");
  flags.add("MODEL", to.models, ".lissome or .pt2, one or more");
  add_call_flags(flags, to.call);
  flags.add("--warmup", to.warmup, "untimed calls of each model", 0);
  flags.add("--runs", to.runs, "rounds", 1);
  flags.add("--json", to.json, "print the result as JSON");
  flags.add_hidden("--probe", to.probe);  // for probe_model alone
  if (!flags.parse(arguments)) return false;
  if (to.models.empty() && to.probe.empty()) throw_error(ErrorKind::usage, "no model given\nSee lissome bench --help");
  return true;
}

Table make_table(const BenchFlags& flags, const Interleaved& timing, const std::vector<Probe>& probes) {
  Table table{"",
              {{"model", ""},
               {"median", "s"},
               {"mean", "s"},
               {"std", "s"},
               {"p5", "s"},
               {"p95", "s"},
               {"speed", "x"},
               {"from", "x"},
               {"to", "x"},
               {"per second", ""},
               {"allocators", "B"},
               {"resident", "B"},
               {"load", "s"},
               {"first call", "s"}},
              {}};
  for (size_t i = 0; i < flags.models.size(); ++i) {
    const Summary& summary = timing.summaries[i];
    const Ratio& ratio = timing.ratios[i];
    table.rows.push_back({flags.models[i], summary.median, summary.mean, summary.deviation, summary.percentile_5,
                          summary.percentile_95, 1 / ratio.median, 1 / ratio.interval.high, 1 / ratio.interval.low,
                          static_cast<double>(flags.call.batch) / summary.median,
                          static_cast<double>(probes[i].allocator_peak), static_cast<double>(probes[i].resident_peak),
                          probes[i].load_seconds, probes[i].first_call_seconds});
  }
  return table;
}

}  // namespace

int run_bench(const std::vector<std::string>& arguments, Console& console) {
  BenchFlags flags;
  if (!read_flags(flags, arguments)) return 0;
  if (!flags.probe.empty()) {
    console.print(run_probe(flags.probe, flags.call).dump() + "\n");
    return 0;
  }
  const CallFlags& call = flags.call;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::vector<NamedArray>> inputs;
  std::vector<std::vector<TensorView>> views;
  for (const std::string& model : flags.models) {
    sessions.push_back(std::make_unique<Session>(open_plan(model, call.threads, call.device),
                                                 SessionOptions{.threads = call.threads}));
    inputs.push_back(choose_inputs(sessions.back()->plan(), call.input, call.batch, call.seed, nullptr));
    views.emplace_back();
    for (const NamedArray& input : inputs.back()) views.back().push_back(input.array.view());
  }
  std::vector<Contender> contenders;
  for (size_t i = 0; i < sessions.size(); ++i)
    contenders.push_back({flags.models[i], [&, i] { sessions[i]->run(views[i]); }});
  InterleaveOptions options;
  options.warmup = flags.warmup;
  options.rounds = flags.runs;
  options.seed = call.seed;
  options.should_stop = [] { return Console::interrupted(); };
  const Interleaved timing = compare_interleaved(contenders, options);
  std::vector<Probe> probes;
  for (const std::string& model : flags.models) probes.push_back(probe_model(model, flags.call));
  const Table table = make_table(flags, timing, probes);
  if (flags.json) {
    Json json = to_json(table);
    json["threads"] = sessions.front()->threads();
    json["rounds"] = timing.seconds.front().size();
    json["confidence"] = timing.ratios.front().confidence;
    json["machine"] = processor_name();
    console.print(json.dump() + "\n");
  } else {
    console.print(render_table(table, console.terminal()));
    console.say(std::to_string(timing.seconds.front().size()) + " interleaved rounds, " +
                std::to_string(sessions.front()->threads()) + " threads, 95 % bootstrap intervals, " +
                processor_name());
  }
  return Console::interrupted() ? 130 : 0;
}

}  // namespace lissome
