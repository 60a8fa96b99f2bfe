// lissome train: a model as torch.export gives it, data and a loss in, a trained model in eval form out.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <nlohmann/json.hpp>

#include "lissome/cli/command.h"
#include "lissome/cli/copy_tensor.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/program_file.h"
#include "lissome/cli/writable.h"
#include "lissome/compare.h"
#include "lissome/train.h"

namespace lissome {
namespace {

struct TrainFlags {
  std::string model, data, labels, validation, loss = "cross_entropy", optimizer = "adamw", schedule = "constant",
                                               initializer, output, weights_output;
  double learning_rate = 0, clip_norm = 1;
  int64_t epochs = 1, batch = 32, patience = 0;
  uint64_t seed = 0;
  bool json = false;
};

bool read_flags(TrainFlags& to, const std::vector<std::string>& arguments) {
  Flags flags(
      "train",
      "Trains a .pt2 that was exported in train mode, without Python. What is written is in eval form, ready for "
      "optimize, with PyTorch's names.");
  flags.require("MODEL", to.model, ".pt2 or .lissome");
  flags.require("--data", to.data, ".npz of named arrays, an IDX file (.gz), or DIR:train of IDX files");
  flags.add("--labels", to.labels, "the array (or IDX file) with the labels");
  flags.add("--val", to.validation, "data that is looked at after each epoch, in eval form");
  flags.add("--loss", to.loss, "cross_entropy, mse, l1, huber, bce, bce_logits, or an output of the model");
  flags.add("--optimizer", to.optimizer, "adamw, adam, sgd, lion or adafactor");
  flags.add("--lr", to.learning_rate, "learning rate; default: the optimizer's own", 0);
  flags.add("--schedule", to.schedule,
            "of the learning rate: constant, cosine:warmup=100, onecycle, step:size=30e, ...");
  flags.add("--epochs", to.epochs, "times that every sample is seen", 1);
  flags.add("--batch", to.batch, "samples of a step", 1);
  flags.add("--clip", to.clip_norm, "global norm to which gradients are scaled down; 0: not", 0);
  flags.add("--init", to.initializer, "train from scratch: smart, uniform, normal, truncated_normal or orthogonal");
  flags.add("--early-stop", to.patience, "epochs without a better loss that end training; 0: none", 0);
  flags.add("--seed", to.seed, "of the order of samples, of dropout and of first weights");
  flags.require("-o,--output", to.output, "the trained model, a .lissome");
  flags.add("--weights-out", to.weights_output, "its weights as .safetensors, under PyTorch's names");
  flags.add("--json", to.json, "print the record as JSON");
  return flags.parse(arguments);
}

OptimizerOptions find_optimizer(const std::string& name) {
  if (name == "adamw") return AdamW{};
  if (name == "adam") return Adam{};
  if (name == "sgd") return Sgd{};
  if (name == "lion") return Lion{};
  if (name == "adafactor") return Adafactor{};
  throw_error(ErrorKind::usage, "--optimizer is adamw, adam, sgd, lion or adafactor, not ", quote(name));
}

TrainOptions make_options(const TrainFlags& flags, const Program& model) {
  TrainOptions options;
  options.loss = parse_loss(flags.loss, model);
  options.optimizer = find_optimizer(flags.optimizer);
  if (flags.learning_rate != 0) options.learning_rate = flags.learning_rate;
  options.schedule = flags.schedule;
  options.epochs = flags.epochs;
  options.batch = flags.batch;
  options.clip_norm = flags.clip_norm;
  options.seed = flags.seed;
  if (!flags.initializer.empty()) {
    const std::optional<Initializer> initializer = find_initializer(flags.initializer);
    if (!initializer)
      throw_error(ErrorKind::usage, "--init is smart, uniform, normal, truncated_normal or orthogonal, not ",
                  quote(flags.initializer));
    options.initialize = {.initializer = *initializer, .scale = {}, .seed = flags.seed};
  }
  if (flags.patience > 0) options.early_stop = {.patience = flags.patience};
  return options;
}

void save_weights(const Program& program, const std::string& path) {
  std::vector<NamedArray> arrays;
  for (const Weight& weight : program.weights) {
    if (weight.role == WeightRole::constant) continue;
    arrays.push_back({weight.name, copy_tensor(weight.tensor)});
  }
  save_safetensors(path, arrays);
}

Table make_table(const TrainRecord& record) {
  Table table{
      "Training",
      {{"epoch", ""}, {"loss", ""}, {"validation loss", ""}, {"accuracy", "%"}, {"learning rate", ""}, {"took", "s"}},
      {}};
  for (const EpochRecord& epoch : record.epochs) {
    const auto cell = [](const std::optional<double>& number) {
      return number ? Cell(*number) : Cell(std::string("-"));
    };
    table.rows.push_back({static_cast<double>(epoch.epoch), epoch.loss, cell(epoch.validation_loss),
                          cell(epoch.validation_accuracy), epoch.learning_rate, epoch.seconds});
  }
  return table;
}

}  // namespace

int run_train(const std::vector<std::string>& arguments, Console& console) {
  TrainFlags flags;
  if (!read_flags(flags, arguments)) return 0;
  check_writable(flags.output);
  check_writable(flags.weights_output);
  const Program model = open_program(flags.model);
  const TrainOptions options = make_options(flags, model);
  const std::vector<DataSignature> signature = describe_inputs(model);
  const auto load = [&](const std::string& path) {
    return fit_dataset(load_dataset(path, {.labels = flags.labels}), signature);
  };
  const Dataset data = load(flags.data);
  std::optional<Dataset> validation;
  if (!flags.validation.empty()) validation = load(flags.validation);

  const Trained trained = train(model, data, validation ? &*validation : nullptr, options, console.control());
  for (const std::string& note : trained.record.notes) console.say("note: " + note);
  save_program(trained.program, flags.output);
  if (!flags.weights_output.empty()) save_weights(trained.program, flags.weights_output);
  const Table table = make_table(trained.record);
  if (flags.json) {
    Json json = to_json(table);
    json["steps"] = trained.record.steps;
    json["skipped_steps"] = trained.record.skipped_steps;
    json["stopped_early"] = trained.record.stopped_early;
    json["interrupted"] = trained.record.interrupted;
    json["notes"] = trained.record.notes;
    console.print(print_json(json) + "\n");
  } else {
    console.print(render_table(table, console.terminal()));
  }
  console.say("written to " + flags.output);
  return trained.record.interrupted ? 130 : 0;
}

}  // namespace lissome
