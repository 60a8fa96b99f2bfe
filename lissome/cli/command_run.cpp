// lissome run: runs a model on arrays of one file or of several files. Each file gets its own outputs as soon as they
// are computed.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/interrupt.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/model.h"
#include "lissome/cli/session_flags.h"
#include "lissome/cli/writable.h"

namespace lissome {
namespace {

namespace fs = std::filesystem;

struct RunFlags {
  std::string model, output, device = "cpu";
  std::vector<std::string> inputs;
  SessionFlags asked;
  int threads = 0;
  bool json = false;
};

void read_run_flags(RunFlags& to, const std::vector<std::string>& arguments) {
  Flags flags("run", "Runs a model on arrays from files.");
  flags.require("MODEL", to.model, kModelHelp);
  flags.require("--input", to.inputs,
                "The inputs: an .npz, .npy or .safetensors whose arrays are matched by name or order, or a folder of "
                "such files. May be given several times; the model runs on one after the other.");
  flags.add("-o,--output", to.output,
            "File for the outputs, an .npz. For several inputs it is a folder, with NAME.npz for the input NAME.npz. "
            "Default: "
            "sizes of the outputs are printed, and with --json their values.");
  flags.add("--threads", to.threads, kModelThreadsHelp, 0, kMostThreads);
  flags.add("--device", to.device, kDeviceHelp);
  add_session_flags(flags, to.asked);
  flags.add_json(to.json);
  flags.parse(arguments);
}

// The files of a folder, sorted by name, or the file itself.
std::vector<std::string> list_files(const std::string& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, failed)) {
    const fs::path& file = entry.path();
    const std::string kind = file.extension();
    if (kind == ".npz" || kind == ".npy" || kind == ".safetensors") files.push_back(file.string());
  }
  if (failed) throw_error(ErrorKind::io, "cannot read the folder ", quote(path), ": ", failed.message());
  if (files.empty())
    throw_error(ErrorKind::usage, "there is no .npz, .npy or .safetensors in the folder ", quote(path));
  std::sort(files.begin(), files.end());
  return files;
}

std::string make_output_path(const std::string& folder, const std::string& input) {
  return (fs::path(folder) / fs::path(input).stem()).string() + ".npz";
}

std::vector<std::string> list_outputs(const std::string& output, const std::vector<std::string>& inputs, bool stream) {
  if (!stream) return {output};
  std::vector<std::string> outputs;
  for (const std::string& input : inputs) outputs.push_back(make_output_path(output, input));
  return outputs;
}

// Checks before anything runs that no two inputs write to one file, and creates the folder.
void prepare_output_folder(const std::string& folder, const std::vector<std::string>& inputs) {
  std::set<std::string> paths;
  for (const std::string& input : inputs) {
    if (!paths.insert(make_output_path(folder, input)).second)
      throw_error(ErrorKind::usage, "two inputs are named ", quote(fs::path(input).stem().string()),
                  ", and so would be their outputs in ", quote(folder), "\nGive them different names");
  }
  std::error_code failed;
  fs::create_directory(folder, failed);  // no error if it exists
  if (failed || !fs::is_directory(folder))
    throw_error(ErrorKind::usage, "the outputs of several inputs need a folder, and ", quote(folder),
                " cannot be one: ", failed ? failed.message() : "a file has this name");
  sweep_temporary_files(folder);
}

void prepare_output_file(const std::string& path) {
  const std::string kind = fs::path(path).extension();
  if (!kind.empty() && kind != ".npz")
    throw_error(ErrorKind::usage, "outputs are written as .npz, and ", quote(path), " ends in ", quote(kind),
                "\nGive -o ", quote(fs::path(path).replace_extension(".npz").string()));
  sweep_temporary_files_beside(path);
}

std::vector<NamedArray> name_outputs(const Plan& plan, std::vector<Array> arrays) {
  std::vector<NamedArray> outputs;
  for (Array& array : arrays) outputs.push_back({plan.outputs[outputs.size()].name, std::move(array)});
  return outputs;
}

// Notes on differences that --buckets causes and on the cost of --memory.
void tell_cost(const AskedSession& session, const Console& console) {
  if (const std::optional<double> difference = session.seen_difference()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g", *difference);
    console.say("note: with padding to the buckets, outputs differ by at most " + std::string(text) +
                " of their largest element");
  }
  if (const StreamFacts stream = session.session().stream(); stream.streamed > 0)
    console.say("note: " + describe_stream(stream));
}

// The arrays with storage; outputs that are None have none.
std::vector<NamedArray> run_once(AskedSession& session, const std::vector<NamedArray>& inputs) {
  std::vector<NamedArray> outputs = name_outputs(session.session().plan(), session.run(view_arrays(inputs)));
  std::erase_if(outputs, [](const NamedArray& named) { return named.array.storage == nullptr; });
  return outputs;
}

Table make_run_table(bool names_inputs) {
  Table table{"Outputs", {{"name", ""}, {"dtype", ""}, {"sizes", ""}}, {}};
  if (names_inputs) table.columns.insert(table.columns.begin(), {"input", ""});
  return table;
}

void add_rows(Table& table, const std::string& input, const std::vector<NamedArray>& outputs) {
  for (const NamedArray& output : outputs) {
    std::vector<Cell> row = {output.name, std::string(dtype_name(output.array.dtype)),
                             format_sizes(output.array.sizes)};
    if (table.columns.size() > row.size()) row.insert(row.begin(), input);
    table.rows.push_back(std::move(row));
  }
}

// Includes the values, unless they were written to a file.
void add_outputs(Json& list, const std::string& input, const std::vector<NamedArray>& outputs, bool with_values) {
  for (const NamedArray& output : outputs) {
    list.push_back({{"input", input},
                    {"name", output.name},
                    {"dtype", dtype_name(output.array.dtype)},
                    {"sizes", output.array.sizes},
                    {"values", with_values ? list_values(output.array) : Json()}});
  }
}

std::string print_outputs(const RunFlags& flags, const AskedSession& session, Json outputs, const Table& table) {
  const std::optional<double> difference = session.seen_difference();
  const StreamFacts stream = session.session().stream();
  Json result{{"model", flags.model},
              {"output", or_null(flags.output)},
              {"threads", session.session().threads()},
              {"answers_differ_by", difference ? Json(*difference) : Json()},
              {"weights", session.session().memory().weights},
              {"weights_read_with_every_call", stream.streamed},
              {"interrupted", Console::interrupted()},
              {"outputs", std::move(outputs)}};
  return print_answer("run", std::move(result), {&table, 1});
}

}  // namespace

int run_run(const std::vector<std::string>& arguments, Console& console) {
  RunFlags flags;
  read_run_flags(flags, arguments);
  std::vector<std::string> files;
  for (const std::string& input : flags.inputs) {
    const std::vector<std::string> found = list_files(input);
    files.insert(files.end(), found.begin(), found.end());
  }
  const bool stream = files.size() > 1 || files != flags.inputs;
  if (!flags.output.empty()) {
    if (stream) prepare_output_folder(flags.output, files);
    refuse_overwriting(list_outputs(flags.output, files, stream), flags.model, files);
    if (!stream) prepare_output_file(flags.output);
  }

  const std::shared_ptr<const Plan> plan = open_plan(flags.model, flags.threads, flags.device);
  for (const PlanOutput& output : plan->outputs) {
    if (!flags.output.empty()) check_array_name(output.name);
  }
  const NoteSink tell = say_notes_once(console, files);
  std::vector<NamedArray> inputs = choose_inputs(*plan, files.front(), 1, 0, tell);
  const std::string other = describe_other_machine(plan->machine, std::min(plan->machine.threads, usable_threads()));
  if (!other.empty()) console.say("note: " + other);
  AskedSession session(plan, flags.threads, flags.asked, view_arrays(inputs));
  // Delivers the outputs of finished inputs; a call that takes longer is ended.
  const auto promise = stream ? console.promise(kGraceSeconds, {}) : nullptr;
  Table table = make_run_table(stream);
  Json listed = Json::array();
  for (size_t i = 0; i < files.size() && !Console::interrupted(); ++i) {
    if (i > 0) inputs = choose_inputs(*plan, files[i], 1, 0, tell);
    const std::vector<NamedArray> outputs = run_once(session, inputs);
    if (i == 0) tell_cost(session, console);
    if (!flags.output.empty()) save_arrays(stream ? make_output_path(flags.output, files[i]) : flags.output, outputs);
    add_rows(table, files[i], outputs);
    if (flags.json) add_outputs(listed, files[i], outputs, flags.output.empty());
  }
  console.print(flags.json ? print_outputs(flags, session, std::move(listed), table)
                           : render_table(table, console.terminal()));
  return 0;
}

}  // namespace lissome
