// lissome prepare: makes a model faster by steps that need no search.
#include <ATen/core/ivalue.h>

#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/lower_flags.h"
#include "lissome/cli/pass_diffs.h"
#include "lissome/cli/program_file.h"
#include "lissome/cli/writable.h"
#include "lissome/compare.h"
#include "lissome/data.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/tune.h"

namespace lissome {
namespace {

struct PrepareFlags {
  std::string model, output, input, data, precision = "f32";
  std::vector<std::string> disabled;
  LowerFlags lower{.effort = "fast", .kernels = {}};
  int threads = 0;
  bool json = false, diff = false, keep_original = false;
};

void read_flags(PrepareFlags& to, const std::vector<std::string>& arguments) {
  Flags flags(
      "prepare",
      "Makes the eval form of a model, folds, fuses and lays out its ops, and saves it. In f32 results are exact "
      "up to rounding, and it needs no data. It searches nothing, and undoes nothing: bf16 and int8 change the "
      "answers, by how much is measured on --data and printed.");
  flags.require("MODEL", to.model, kModelHelp);
  flags.require("-o,--output", to.output, kModelOutputHelp);
  flags.add("--precision", to.precision, "Precision to compute in: f32, bf16 or int8, which needs --data.");
  flags.add("--data", to.data, kDataHelp);
  flags.add("--disable", to.disabled, kDisableHelp);
  flags.add("--input", to.input, kInputHelp);
  flags.add("--threads", to.threads, kOwnThreadsHelp, 0, kMostThreads);
  add_lower_flags(flags, to.lower);
  add_contents_flag(flags, to.keep_original);
  flags.add("--diff", to.diff, kDiffHelp);
  flags.add_json(to.json);
  flags.parse(arguments);
}

class Preparation {
 public:
  Preparation(const PrepareFlags& flags, Console& console) : flags_(flags), console_(console) {}

  void run() {
    const Dtype precision = parse_target_precision(flags_.precision);
    if (precision == Dtype::i8 && flags_.data.empty())
      throw_error(ErrorKind::usage, "--precision int8 needs --data: the ranges of activations are read off its rows");
    check_writable(flags_.output);
    refuse_overwriting({flags_.output}, flags_.model, {flags_.input, flags_.data});
    const Program original = open_program(flags_.model);
    for (const std::string& note : describe_eval_form(original)) say_note(note);
    PipelineOptions pipeline;
    pipeline.disabled = flags_.disabled;
    program_ = std::make_shared<const Program>(prepare_inference(original, pipeline, &passes_));
    const PrecisionForm form = make_form(precision);
    for (const std::string& note : list_lowering_notes(*form.plan, flags_.lower)) say_note(note);
    for (const LargerForm& larger : list_larger_forms(*form.plan)) say_note(describe_larger_form(larger));
    save_model_file(flags_.output, pack_form(form, read_contents(flags_.keep_original)));
    flags_.json ? print_json(form) : print_text(form);
  }

 private:
  PrecisionForm make_form(Dtype precision) {
    const LowerOptions lowering = read_lowering(flags_.lower, flags_.threads);
    const std::optional<Dataset> data = read_data();
    std::vector<NamedArray> example = read_example();
    if (example.empty() && !data && lowering.effort != Effort::fast && !program_->dimensions.empty())
      console_.say("note: kernels are timed at the smallest dynamic sizes; give --input to time them at other sizes");
    PrecisionMaker maker(program_, data ? &*data : nullptr, lowering, std::move(example), console_.control());
    if (precision == Dtype::i8)
      if (const std::string slow = explain_int8_without_vnni(); !slow.empty()) say_note(slow);
    PrecisionForm form = maker.make(precision);
    for (const std::string& note : form.notes) say_note(note);
    if (precision == Dtype::bf16 && flags_.data.empty())
      say_note("bf16 changes the answers; give --data to measure by how much");
    return form;
  }

  std::optional<Dataset> read_data() {
    if (flags_.data.empty()) return std::nullopt;
    Dataset data = fit_dataset(load_dataset(flags_.data), describe_inputs(*program_));
    for (const std::string& note : data.notes) say_note(note);
    return data;
  }

  std::vector<NamedArray> read_example() {
    if (flags_.input.empty()) return {};
    std::vector<std::string> notes;
    std::vector<NamedArray> example =
        fit_inputs(load_arrays(flags_.input), describe_inputs(*program_), flags_.input, &notes);
    for (const std::string& note : notes) say_note(note);
    return example;
  }

  void say_note(const std::string& note) {
    console_.say("note: " + note);
    notes_.push_back(note);
  }

  Table list_passes() const {
    Table table{"Passes", {{"pass", ""}, {"rewrites", ""}, {"took", "s"}}, {}};
    for (const PassResult& result : passes_) {
      if (result.rewrites > 0)
        table.rows.push_back({result.name, static_cast<double>(result.rewrites), result.seconds});
    }
    return table;
  }

  void print_json(const PrecisionForm& form) const {
    const Table table = list_passes();
    const Json result{{"model", flags_.model}, {"output", flags_.output},
                      {"precision", form.how}, {"relative_error", form.error ? Json(*form.error) : Json()},
                      {"notes", notes_},       {"diff", flags_.diff ? list_diffs(passes_) : Json()}};
    console_.print(print_answer("prepare", result, {&table, 1}));
  }

  void print_text(const PrecisionForm& form) const {
    if (flags_.diff) console_.print(describe_diffs(passes_));
    std::string text = render_table(list_passes(), console_.terminal()) + "\n";
    if (form.how != "f32") text += form.how + "\n";
    console_.print(text + describe_error(form) + "written to " + flags_.output + "\n");
  }

  const PrepareFlags& flags_;
  Console& console_;
  std::shared_ptr<const Program> program_;
  std::vector<PassResult> passes_;
  std::vector<std::string> notes_;
};

}  // namespace

int run_prepare(const std::vector<std::string>& arguments, Console& console) {
  PrepareFlags flags;
  read_flags(flags, arguments);
  Preparation(flags, console).run();
  return 0;
}

}  // namespace lissome
