// lissome train: trains a model of torch.export on data with a loss, and writes it in eval form.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/copy_tensor.h"
#include "lissome/cli/interrupt.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/pass_diffs.h"
#include "lissome/cli/program_file.h"
#include "lissome/cli/read_train_log.h"
#include "lissome/cli/train_flags.h"
#include "lissome/cli/train_log.h"
#include "lissome/cli/train_report.h"
#include "lissome/cli/writable.h"
#include "lissome/compare.h"
#include "lissome/loader.h"

namespace lissome {
namespace {

// Nearly the whole time that an answer may take, because weights and optimizer states are written to disk.
constexpr double kSecondsToSave = kAnswerSeconds - 0.06;

void save_weights(const Program& program, const std::string& path) {
  std::vector<NamedArray> arrays;
  for (const Weight& weight : program.weights) {
    if (weight.role == WeightRole::constant || !weight.persistent) continue;
    arrays.push_back({weight.name, copy_tensor(weight.tensor)});
  }
  save_safetensors(path, arrays);
}

// If the log can no longer be written, reports it and training continues without the log.
void write_log(std::optional<TrainLog>& log, Console& console, const auto& write) {
  if (!log) return;
  try {
    write(*log);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    log.reset();
    console.say("note: " + error.message() + ". The log ends here, and training continues");
  }
}

// From the first step on, an interrupted training has a moment to finish its step and to write snapshot and model. Then
// it reports files that are not written; files of older steps stay as they are.
class TrainPromise {
 public:
  TrainPromise(const TrainFlags& flags, bool takes_snapshots, const Console& console)
      : flags_(flags), takes_snapshots_(takes_snapshots), console_(console) {}

  void begin() {
    if (!promise_) promise_ = console_.promise(kSecondsToSave, [this] { report_missing(); });
  }
  void note_written() { written_ = true; }

 private:
  void report_missing() const {
    const std::string folder = choose_snapshot_folder(flags_);
    const bool saved = takes_snapshots_ && std::filesystem::is_directory(folder) && !list_snapshots(folder).empty();
    if (!written_) console_.say("note: " + flags_.output + " could not be written within a second");
    console_.say(saved ? "continue with --resume " + folder : "note: no snapshot was saved yet");
  }

  const TrainFlags& flags_;
  const bool takes_snapshots_;
  const Console& console_;
  std::atomic<bool> written_{false};
  std::shared_ptr<void> promise_;
};

TrainCallbacks make_callbacks(std::optional<TrainLog>& log, TrainPromise& promise, Console& console) {
  return {
      .on_step =
          [&](const TrainStepRecord& step) {
            promise.begin();
            write_log(log, console, [&](TrainLog& to) { to.add_step(step); });
          },
      .on_epoch =
          [&](const EpochRecord& epoch) { write_log(log, console, [&](TrainLog& to) { to.add_epoch(epoch); }); },
      .on_memory =
          [&](const MemoryRecord& memory) { write_log(log, console, [&](TrainLog& to) { to.add_memory(memory); }); },
      .on_notice =
          [&](const std::string& text) {
            console.say("note: " + text);
            write_log(log, console, [&](TrainLog& to) { to.add_notice(text); });
          },
      .on_passes = {},
      .on_planning = console.control().on_progress};
}

std::optional<TrainBeside> read_beside(const TrainFlags& flags) {
  if (flags.beside.empty()) return std::nullopt;
  if (flags.report.empty())
    throw_error(ErrorKind::usage, "--beside needs --report, in which it shows the other training");
  return TrainBeside{std::filesystem::path(flags.beside).stem().string(), read_train_log(flags.beside)};
}

void save_report(const TrainFlags& flags, const TrainRecord& record, const std::optional<TrainBeside>& beside,
                 const std::vector<std::string>& arguments) {
  const std::vector<std::pair<std::string, std::string>> facts = {
      {"Model", flags.model},         {"Data", flags.data},   {"Loss", flags.loss.name},
      {"Optimizer", flags.optimizer}, {"Batch", flags.batch}, {"Seed", std::to_string(flags.seed)}};
  write_file(flags.report,
             render_page(make_train_page(record, beside, flags.model, facts, "lissome train " + join(arguments, " "))));
}

void print_record(const TrainRecord& record, const TrainFlags& flags, Console& console) {
  const Table table = make_epoch_table(record);
  if (!flags.json) return console.print(render_table(table, console.terminal()));
  Json metrics = Json::object();
  for (const auto& [name, value] : record.training_metrics) metrics[name] = value;
  const Json result{{"output", flags.output},
                    {"weights_out", or_null(flags.weights_output)},
                    {"report", or_null(flags.report)},
                    {"steps", record.steps},
                    {"skipped_steps", record.skipped_steps},
                    {"batch", record.batch},
                    {"peak_memory", record.peak_memory},
                    {"training_metrics", metrics},
                    {"stopped_early", record.stopped_early},
                    {"interrupted", record.interrupted},
                    {"notes", record.notes}};
  console.print(print_answer("train", result, {&table, 1}));
}

}  // namespace

int run_train(const std::vector<std::string>& arguments, Console& console) {
  TrainFlags flags;
  read_train_flags(flags, arguments);
  const std::optional<GroupPlace> place = choose_group_place(flags);
  const double peer_timeout = parse_duration(flags.peer_timeout);
  // The other ranks compute the same weights, and leave it to the first to write and to say so.
  const bool leads = !place || place->rank == 0;
  for (const std::string& path : {flags.output, flags.weights_output, flags.report}) {
    if (leads) check_writable(path);
  }
  refuse_overwriting({flags.output, flags.weights_output, flags.report, flags.log}, flags.model,
                     {flags.data, flags.validation, flags.beside});
  check_offload_folder(flags.offload);
  if (leads && flags.find_unused)
    console.say("note: --find-unused changes nothing: parameters without a gradient are always known from the plan");
  if (leads && flags.static_graph)
    console.say("note: --static-graph changes nothing: the order of gradients is always known before the first step");
  if (leads && flags.synchronize_batch_norm && !place)
    console.say("note: --sync-batch-norm changes nothing in one process");
  const std::optional<TrainBeside> beside = read_beside(flags);
  const Program model = open_program(flags.model);
  TrainOptions options = make_train_options(flags, model);
  const std::vector<DataSignature> signature = describe_inputs(model);
  const auto load = [&](const std::string& path, const Dataset* first) {
    Dataset loaded = load_dataset(path, {.labels = flags.labels});
    if (first != nullptr) loaded = match_dataset(std::move(loaded), *first);
    Dataset fitted = fit_batches(std::move(loaded), signature, options.batches);
    for (const std::string& note : fitted.notes) {
      if (leads) console.say("note: " + note);
    }
    return fitted;
  };
  const Dataset data = load(flags.data, nullptr);
  std::optional<Dataset> validation;
  if (!flags.validation.empty()) validation = load(flags.validation, &data);

  std::optional<Group> group;
  if (place) {
    std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to sockets of peers that may be gone
    group.emplace(*place, peer_timeout);
    options.group = &*group;
  }
  const Dataset* judged = validation ? &*validation : nullptr;
  if (!leads) {
    // From the first step on, an interrupted rank ends when all have agreed to.
    std::shared_ptr<void> promise;
    options.callbacks.on_step = [&](const TrainStepRecord&) {
      if (!promise) promise = console.promise(kSecondsToSave, {});
    };
    const Trained trained = train(model, data, judged, options, {{}, console.control().should_stop});
    return trained.record.interrupted ? 130 : 0;
  }
  std::optional<TrainLog> log;
  if (!flags.log.empty() || !flags.events.empty()) log.emplace(flags.log, flags.events);
  TrainPromise promise(flags, options.snapshots.has_value(), console);
  options.callbacks = make_callbacks(log, promise, console);
  if (flags.diff)
    options.callbacks.on_passes = [&](const std::vector<PassResult>& passes) { console.say(describe_diffs(passes)); };
  const Trained trained = train(model, data, judged, options, console.control());
  const TrainRecord& record = trained.record;
  save_program(trained.program, flags.output);
  promise.note_written();
  if (!flags.weights_output.empty()) save_weights(trained.program, flags.weights_output);
  if (!flags.report.empty()) save_report(flags, record, beside, arguments);
  print_record(record, flags, console);
  console.say("peak memory: " + format_bytes(record.peak_memory) + " held by allocators; written to " + flags.output);
  const std::string snapshots = choose_snapshot_folder(flags);
  if (record.interrupted) {
    if (options.snapshots) console.say("continue with --resume " + snapshots);
    return 130;
  }
  // Removes snapshots that the user did not ask for: they were for the case of a failure.
  if (options.snapshots && flags.snapshots.empty() && snapshots == flags.output + ".snapshots")
    remove_snapshots(snapshots);
  return 0;
}

}  // namespace lissome
