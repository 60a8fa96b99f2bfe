// lissome bench: times models against each other in one run, with interleaved rounds.
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/interrupt.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/model.h"
#include "lissome/cli/probe.h"
#include "lissome/cli/session_flags.h"

namespace lissome {
namespace {

struct BenchFlags {
  std::vector<std::string> models;
  std::string probe, streams;
  CallFlags call;
  SessionFlags asked;
  int warmup = 10, runs = 100;
  bool json = false, allow_native = false;
};

void read_bench_flags(BenchFlags& to, const std::vector<std::string>& arguments) {
  Flags flags(
      "bench",
      "Times one or more models against each other, in rounds of one call each. Ratios compare with the first model.");
  flags.add("MODEL", to.models, kModelHelp);
  add_call_flags(flags, to.call);
  flags.add("--warmup", to.warmup, kWarmupHelp, 0);
  flags.add("--runs", to.runs, kRunsHelp, 1);
  add_session_flags(flags, to.asked);
  flags.add("--streams", to.streams,
            "Measure calls per second with 1 to N calls at once, which share the threads and a limit on memory. auto: "
            "N is the number of threads.");
  flags.add(
      "--allow-native", to.allow_native,
      "Also time native code that AOTInductor put into a .pt2. It is loaded into this process and can run arbitrary "
      "code, so use this only for files that you trust.");
  flags.add_json(to.json);
  flags.add_hidden("--probe", to.probe);  // for probe_model() only
  flags.parse(arguments);
  if (to.models.empty() && to.probe.empty())
    throw_error(ErrorKind::usage, "no model was given\nSee lissome bench --help");
  if (!to.streams.empty() && !to.asked.buckets.empty())
    throw_error(ErrorKind::usage, "--streams and --buckets exclude each other: streams are measured without buckets");
  if (!to.streams.empty() && to.allow_native)
    throw_error(ErrorKind::usage, "--streams and --allow-native exclude each other: native code has no streams");
}

// Short names for people: the last part of each path, if these differ.
Table shorten_paths(Table table) {
  std::set<std::string> names, paths;
  for (const auto& row : table.rows) {
    const std::string& path = std::get<std::string>(row.front());
    paths.insert(path);
    names.insert(path.substr(path.rfind('/') + 1));
  }
  if (names.size() < paths.size()) return table;
  for (auto& row : table.rows) {
    std::string& path = std::get<std::string>(row.front());
    path.erase(0, path.rfind('/') + 1);
  }
  return table;
}

// One row of the table: a model without options, within a limit, in buckets, or as native code, which has no session.
struct Entry {
  std::string name, model;
  SessionFlags asked;
  std::shared_ptr<const Plan> plan;
  std::vector<NamedArray> inputs;
  std::vector<TensorView> views;
  std::unique_ptr<AskedSession> session;
  NativeRun native;
  size_t program = 0;  // for native code: index of the entry that it is compared with

  // Samples of one call.
  int64_t batch() const {
    for (const TensorView& view : views)
      if (!view.sizes.empty()) return view.sizes.front();
    return 1;
  }
  const Session& plain_session() const { return session->session(); }
  std::vector<Array> run() const { return native ? native(views) : session->run(views); }
};

Entry open_entry(const BenchFlags& flags, const std::string& model, const SessionFlags& asked,
                 const NoteSink& tell = {}) {
  Entry entry;
  entry.name = entry.model = model;
  if (!asked.memory.empty()) entry.name += " in " + format_bytes(read_memory(asked));
  if (!asked.buckets.empty()) entry.name += " in buckets " + asked.buckets;
  entry.asked = asked;
  entry.plan = open_plan(model, flags.call.threads, flags.call.device);
  entry.inputs = choose_inputs(*entry.plan, flags.call.input, flags.call.batch, flags.call.seed, tell);
  entry.views = view_arrays(entry.inputs);
  entry.session = std::make_unique<AskedSession>(entry.plan, flags.call.threads, asked, entry.views);
  return entry;
}

// Native code does not describe its inputs, so it gets those of a program.
Entry open_native_entry(const std::string& model, const std::vector<Entry>& others, size_t program) {
  if (others.empty())
    throw_error(ErrorKind::usage,
                "the first model must be a program, because native code does not describe its inputs\n",
                "Name the .pt2 or .lissome that ", quote(model), " was compiled from before it");
  Entry entry;
  entry.name = model + " native code";
  entry.model = model;
  entry.program = program;
  entry.inputs = others[program].inputs;
  entry.views = view_arrays(entry.inputs);
  entry.native = load_torch().open_native_code(model, others[program].plain_session().threads());
  return entry;
}

// With --memory or --buckets every model is also timed without, to show the cost.
std::vector<Entry> open_entries(const BenchFlags& flags, const Console& console) {
  const SessionFlags &asked = flags.asked, limited{asked.memory, {}, {}};
  read_buckets(asked);  // reports a wrong form before anything is opened
  std::vector<Entry> entries;
  for (const std::string& model : flags.models) {
    const NativeCode native = flags.allow_native ? load_torch().find_native_code(model) : NativeCode::none;
    if (native == NativeCode::alone) {
      entries.push_back(open_native_entry(model, entries, 0));
      continue;
    }
    const size_t program = entries.size();
    entries.push_back(open_entry(flags, model, {}, say_notes(console)));
    if (!asked.memory.empty()) entries.push_back(open_entry(flags, model, limited));
    if (!asked.buckets.empty()) entries.push_back(open_entry(flags, model, asked));
    if (native == NativeCode::beside_program) entries.push_back(open_native_entry(model, entries, program));
  }
  return entries;
}

// How many times slower a limit makes its model, predicted from the rate of the file and measured. The reading thread
// has a processor of its own only if the other threads leave one.
Table predict_slowdowns(const std::vector<Entry>& entries, const Interleaved& timing) {
  Table table{"Within the limit", {{"model", ""}, {"read a call", "B"}, {"predicted", "x"}, {"measured", "x"}}, {}};
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].asked.memory.empty() || !entries[i].asked.buckets.empty()) continue;
    const StreamFacts stream = entries[i].plain_session().stream();
    const double free = timing.summaries[i - 1].median;
    const bool overlaps = entries[i].plain_session().threads() < usable_threads();
    const double predicted = overlaps ? std::max(free, stream.seconds()) : free + stream.seconds();
    table.rows.push_back(
        {entries[i].name, static_cast<double>(stream.streamed), predicted / free, timing.summaries[i].median / free});
  }
  return table;
}

// The differences of outputs that padding causes.
Table list_differences(const std::vector<Entry>& entries) {
  Table table{"In buckets", {{"model", ""}, {"answers differ by", ""}}, {}};
  for (const Entry& entry : entries) {
    if (entry.native) continue;
    if (const std::optional<double> seen = entry.session->seen_difference()) table.rows.push_back({entry.name, *seen});
  }
  return table;
}

// The largest difference of outputs, which shows whether native code was compiled from the program beside it.
Table compare_native(const std::vector<Entry>& entries) {
  Table table{"Native code", {{"model", ""}, {"answers differ by", ""}}, {}};
  for (const Entry& entry : entries) {
    if (!entry.native) continue;
    const std::vector<Array> wanted = entries[entry.program].run(), seen = entry.run();
    double difference = wanted.size() == seen.size() ? 0 : HUGE_VAL;
    for (size_t i = 0; i < wanted.size() && i < seen.size(); ++i)
      difference = std::max(difference, find_difference(wanted[i], seen[i]));
    table.rows.push_back({entry.name, difference});
  }
  return table;
}

std::vector<int> read_streams(const std::string& text, int threads) {
  if (text == "auto") return list_stream_counts(threads);
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > StreamPool::kMostStreams)
    throw_error(ErrorKind::usage, "--streams must be auto or 1 to ", StreamPool::kMostStreams, ", not ", quote(text));
  return count == 1 ? std::vector{1} : std::vector{1, count};
}

std::vector<std::string> list_notes(const std::vector<Entry>& entries) {
  std::vector<std::string> notes;
  for (const Entry& entry : entries) {
    if (entry.native || entry.name != entry.model) continue;
    const Session& session = entry.plain_session();
    const std::string other = describe_other_machine(session.plan().machine, session.threads());
    if (!other.empty()) notes.push_back(entry.name + ": " + other);
  }
  return notes;
}

// `rounds` is 0 if none were interleaved. The first table is that of the models.
void print_figures(const BenchFlags& flags, const std::vector<Entry>& entries, size_t rounds, double confidence,
                   std::span<const Table> tables, const Console& console) {
  const std::vector<std::string> notes = list_notes(entries);
  const int threads = entries.front().plain_session().threads();
  for (const std::string& note : notes) console.say("note: " + note);
  if (flags.json) {
    const Json result{{"threads", threads},       {"interleaved_rounds", rounds},
                      {"confidence", confidence}, {"machine", processor_name()},
                      {"notes", notes},           {"interrupted", Console::interrupted()}};
    return console.print(print_answer("bench", result, tables));
  }
  for (const Table& table : tables)
    console.print((&table == tables.data() ? "" : "\n") +
                  render_table(&table == tables.data() ? shorten_paths(table) : table, console.terminal()));
  console.say((rounds > 0 ? std::to_string(rounds) + " interleaved rounds, " : "") + std::to_string(threads) +
              " threads, " + format_cell(100 * confidence, "") + " % intervals, " + processor_name());
}

// Calls per second of each model by the number of streams.
int bench_streams(const BenchFlags& flags, const Console& console) {
  constexpr double kSeconds = 3;
  Table table{"Streams",
              {{"model", ""},
               {"streams", ""},
               {"threads each", ""},
               {"calls a second", ""},
               {"least", ""},
               {"most", ""},
               {"speed", "x"},
               {"from", "x"},
               {"to", "x"},
               {"chosen", ""}},
              {}};
  const std::vector<Entry> entries = open_entries(flags, console);
  std::optional<double> confidence;
  for (const Entry& entry : entries) {
    const int threads = entry.plain_session().threads();
    const SessionOptions options{.threads = threads, .memory = read_memory(entry.asked)};
    const std::vector<int> counts = read_streams(flags.streams, threads);
    const std::vector<StreamRate> rates = measure_streams(entry.plan, entry.views, counts, options, kSeconds);
    confidence = rates.front().speed.confidence;
    for (const StreamRate& rate : rates) {
      const Ratio& speed = rate.speed;
      table.rows.push_back({entry.name, static_cast<double>(rate.streams), static_cast<double>(rate.threads_each),
                            rate.calls_per_second, rate.interval.low, rate.interval.high, speed.median,
                            speed.interval.low, speed.interval.high,
                            rate.streams == choose_streams(rates) ? "yes" : ""});
    }
  }
  print_figures(flags, entries, 0, *confidence, {&table, 1}, console);
  return 0;
}

Table make_bench_table(const std::vector<Entry>& entries, const Interleaved& timing,
                       const std::vector<std::optional<Probe>>& probes) {
  Table table{"Models",
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
  for (size_t i = 0; i < entries.size(); ++i) {
    const Summary& summary = timing.summaries[i];
    const Ratio& ratio = timing.ratios[i];
    std::vector<Cell> row = {entries[i].name,        summary.median,
                             summary.mean,           summary.deviation,
                             summary.percentile_5,   summary.percentile_95,
                             1 / ratio.median,       1 / ratio.interval.high,
                             1 / ratio.interval.low, static_cast<double>(entries[i].batch()) / summary.median};
    std::vector<Cell> probed(4, std::nan(""));
    if (probes[i]) {
      probed = {static_cast<double>(probes[i]->allocator_peak), static_cast<double>(probes[i]->resident_peak),
                probes[i]->load_seconds, probes[i]->first_call_seconds};
    }
    row.insert(row.end(), probed.begin(), probed.end());
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

int run_bench(const std::vector<std::string>& arguments, Console& console) {
  BenchFlags flags;
  read_bench_flags(flags, arguments);
  if (!flags.probe.empty()) {  // read only by probe_model() of the same version, so it has a form of its own
    console.print(print_json(run_probe(flags.probe, flags.call, flags.asked)) + "\n");
    return 0;
  }
  if (!flags.streams.empty()) return bench_streams(flags, console);
  const std::vector<Entry> entries = open_entries(flags, console);
  const auto promise = console.promise(kGraceSeconds, {});  // the rounds so far, unless a call takes longer
  std::vector<Contender> contenders;
  for (const Entry& entry : entries) contenders.push_back({entry.name, [&entry] { entry.run(); }});
  InterleaveOptions options;
  options.warmup = flags.warmup;
  options.rounds = flags.runs;
  options.should_stop = [] { return Console::interrupted(); };
  const Interleaved timing = compare_interleaved(contenders, options);
  std::vector<std::optional<Probe>> probes;  // empty for native code and after an interrupt
  for (const Entry& entry : entries)
    probes.push_back(entry.native ? std::nullopt : probe_model(entry.model, flags.call, entry.asked));
  std::vector<Table> tables = {make_bench_table(entries, timing, probes)};
  for (Table& cost :
       std::vector{predict_slowdowns(entries, timing), list_differences(entries), compare_native(entries)})
    if (!cost.rows.empty()) tables.push_back(std::move(cost));
  print_figures(flags, entries, timing.seconds.front().size(), timing.ratios.front().confidence, tables, console);
  return Console::interrupted() ? 130 : 0;
}

}  // namespace lissome
