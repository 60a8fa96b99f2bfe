// lissome quantize: one quantized form, by the flags alone, with what became of each layer.
#include <ATen/core/ivalue.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lissome/base.h"
#include "lissome/cli/command.h"
#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/json_answer.h"
#include "lissome/cli/lower_flags.h"
#include "lissome/cli/model.h"
#include "lissome/cli/program_file.h"
#include "lissome/cli/writable.h"
#include "lissome/compare.h"
#include "lissome/compress.h"
#include "lissome/data.h"
#include "lissome/pass.h"
#include "lissome/train.h"
#include "lissome/tune.h"

namespace lissome {
namespace {

struct QuantizeFlags {
  std::string model, output, data, labels, kind = "static", observer = "mse", rounding = "gptq";
  std::string train_data, loss = "cross_entropy";
  RecoveryOptions recovery;
  std::vector<std::string> only, skip;
  LowerFlags lower{.effort = "fast", .kernels = {}};
  int bits = 8, threads = 0;
  double least_signal = kLeastSignalToNoise;
  bool json = false, keep_original = false;
};

void read_flags(QuantizeFlags& to, const std::vector<std::string>& arguments) {
  Flags flags(
      "quantize",
      "Makes the quantized form of a model that the flags describe, measures by how much its answers differ from "
      "f32's on rows that did not calibrate it, and shows what became of each layer. It searches nothing and "
      "undoes nothing: lissome optimize does.");
  flags.require("MODEL", to.model, kModelHelp);
  flags.require("-o,--output", to.output, kModelOutputHelp);
  flags.add("--data", to.data, kDataHelp);
  flags.add("--labels", to.labels,
            "Name of the labels in --data and --train-data, or a file of them. With classes, the top-1 accuracy is "
            "shown too.");
  flags.add(
      "--kind", to.kind,
      "static: a scale for each activation, from the data. dynamic: linears find a scale for each row while "
      "running, which is slower and more accurate on transformers. weight: linears unpack a weight of --bits while "
      "running, for models that reading weights bounds; it needs no data, and loses less with data. qat: static, with "
      "weights and scales trained on --train-data to make up for the rounding.");
  flags.add("--bits", to.bits, "Bits of a weight: 8, or 4 with --kind weight.", 4, 8);
  flags.add("--observer", to.observer,
            "How ranges of activations are chosen from the data: minmax, average (of the batches' ranges), percentile "
            "(leaves out 1 of 10,000 values on either side), entropy or mse (least squared error).");
  flags.add("--rounding", to.rounding,
            "How weights of 4 bits are rounded where there are data: gptq (columns make up for what others lose, where "
            "that lowers the error) or nearest.");
  flags.add("--only", to.only,
            "Pattern of modules that are quantized, for example 'encoder.*'; the others stay in f32.");
  flags.add("--skip", to.skip, "Pattern of modules that stay in f32. May be given several times, as --only may.");
  flags.add("--least-signal", to.least_signal,
            "Layers whose output keeps less signal over quantization noise, in decibels, stay in f32.", 0);
  flags.add("--train-data", to.train_data, "Samples with labels that --kind qat trains on, of the kinds of --data.");
  flags.add("--loss", to.loss, kLossHelp);
  flags.add("--epochs", to.recovery.epochs, "Passes of --kind qat over --train-data.", 1);
  flags.add("--lr", to.recovery.learning_rate, "First learning rate of --kind qat, which falls to 0.", 0);
  flags.add("--batch", to.recovery.batch, "Samples of a step of --kind qat.", 1);
  flags.add("--seed", to.recovery.seed, "Seed of the order of samples in --kind qat.");
  flags.add("--threads", to.threads, kOwnThreadsHelp, 0, kMostThreads);
  add_lower_flags(flags, to.lower);
  add_contents_flag(flags, to.keep_original);
  flags.add_json(to.json);
  flags.parse(arguments);
}

// What would change nothing.
void refuse_unused(const QuantizeFlags& flags, QuantizeKind kind) {
  const QuantizeFlags defaults;
  const bool trains = kind == QuantizeKind::trained;
  if (!trains && (flags.recovery != defaults.recovery || flags.loss != defaults.loss))
    throw_error(ErrorKind::usage, "--loss, --epochs, --batch, --lr and --seed are for --kind qat");
  if ((trains || kind == QuantizeKind::weight) && flags.least_signal != defaults.least_signal)
    throw_error(ErrorKind::usage, "--least-signal is for --kind static and dynamic");
}

QuantizeOptions make_options(const QuantizeFlags& flags, QuantizeKind kind) {
  const bool packs = kind == QuantizeKind::weight;
  if (flags.bits != 8 && (flags.bits != 4 || !packs))
    throw_error(ErrorKind::usage, "--bits is ", flags.bits, "; 8 is allowed, and 4 with --kind weight");
  if (flags.data.empty() && !packs)
    throw_error(ErrorKind::usage, "--data is needed: the ranges of activations are read off its rows");
  const bool trains = kind == QuantizeKind::trained;
  if (trains != !flags.train_data.empty())
    throw_error(ErrorKind::usage, trains ? "--kind qat needs --train-data, whose samples it trains on"
                                         : "--train-data is for --kind qat");
  refuse_unused(flags, kind);
  QuantizeOptions options;
  options.range = parse_range_method(flags.observer);
  options.dynamic_linears = kind == QuantizeKind::dynamic;
  options.rounding = parse_rounding(flags.rounding);
  options.only = flags.only;
  options.keep_float = flags.skip;
  return options;
}

Table list_layers(const std::vector<QuantizedLayer>& layers, const std::string& precision) {
  Table table{"Layers",
              {{"layer", ""},
               {"op", ""},
               {"computes in", ""},
               {"signal, dB", ""},
               {"clipped", "%"},
               {"reach", "x"},
               {"reason", "", true}},
              {}};
  for (const QuantizedLayer& layer : layers) {
    const bool has_range = layer.range.has_scale();
    const auto or_none = [](bool there, double number) { return there ? Cell(number) : Cell(std::nan("")); };
    table.rows.push_back({name_layer(layer), layer.op, layer.quantized ? precision : "f32",
                          or_none(layer.signal_to_noise != 0, layer.signal_to_noise),
                          or_none(has_range, layer.range.clipped), or_none(has_range, layer.range.reach),
                          layer.reason});
  }
  return table;
}

void print_form(const QuantizeFlags& flags, const PrecisionForm& form, const std::vector<std::string>& notes,
                Console& console) {
  const Table table = list_layers(form.layers, "int" + std::to_string(flags.bits));
  if (flags.json) {
    const Json result{{"model", flags.model},
                      {"output", flags.output},
                      {"kind", flags.kind},
                      {"bits", flags.bits},
                      {"observer", flags.observer},
                      {"precision", form.how},
                      {"relative_error", form.error ? Json(*form.error) : Json()},
                      {"accuracy", to_json(form.accuracy)},
                      {"notes", notes}};
    return console.print(print_answer("quantize", result, {&table, 1}));
  }
  console.print(render_table(table, console.terminal()) + "\n" + form.how + "\n" + describe_error(form) +
                "written to " + flags.output + "\n");
}

Program train_form(const Program& fake_quantized, const QuantizeFlags& flags, const NoteSink& say_note,
                   Console& console) {
  Dataset data = fit_dataset(load_dataset(flags.train_data, {.labels = flags.labels}), describe_inputs(fake_quantized));
  for (const std::string& note : data.notes) say_note(note);
  RecoveryOptions options = flags.recovery;
  options.loss = parse_loss(flags.loss, fake_quantized);
  options.threads = flags.threads;
  return recover_accuracy(fake_quantized, data, options, console.control()).program;
}

PrecisionForm make_form(PrecisionMaker& maker, const Program& original, QuantizeKind kind, const QuantizeFlags& flags,
                        const QuantizeOptions& options, const NoteSink& say_note, Console& console) {
  if (kind == QuantizeKind::weight) return maker.quantize_weights(flags.bits, options);
  if (kind != QuantizeKind::trained) return maker.quantize(options, flags.least_signal);
  return maker.quantize_trained(
      original, [&](const Program& program) { return train_form(program, flags, say_note, console); }, options);
}

}  // namespace

int run_quantize(const std::vector<std::string>& arguments, Console& console) {
  QuantizeFlags flags;
  read_flags(flags, arguments);
  const QuantizeKind kind = parse_quantize_kind(flags.kind);
  const QuantizeOptions options = make_options(flags, kind);
  check_writable(flags.output);
  refuse_overwriting({flags.output}, flags.model, {flags.data, flags.train_data});
  std::vector<std::string> notes;
  const auto say_note = [&](const std::string& note) {
    console.say("note: " + note);
    notes.push_back(note);
  };
  const Program original = open_program(flags.model);
  for (const std::string& note : describe_eval_form(original)) say_note(note);
  const auto program = std::make_shared<const Program>(prepare_inference(original));
  std::optional<Dataset> data;
  if (!flags.data.empty()) {
    Dataset loaded = load_dataset(flags.data, {.labels = flags.labels});
    if (!flags.train_data.empty())
      loaded = match_dataset(std::move(loaded), load_dataset(flags.train_data, {.labels = flags.labels}));
    data = fit_dataset(std::move(loaded), describe_inputs(*program));
    for (const std::string& note : data->notes) say_note(note);
  }
  if (const std::string slow = explain_int8_without_vnni(); !slow.empty()) say_note(slow);
  PrecisionMaker maker(program, data ? &*data : nullptr, read_lowering(flags.lower, flags.threads), {},
                       console.control());
  const PrecisionForm form = make_form(maker, original, kind, flags, options, say_note, console);
  for (const std::string& note : form.notes) say_note(note);
  for (const std::string& note : list_lowering_notes(*form.plan, flags.lower)) say_note(note);
  save_model_file(flags.output, pack_form(form, read_contents(flags.keep_original)));
  print_form(flags, form, notes, console);
  return 0;
}

}  // namespace lissome
