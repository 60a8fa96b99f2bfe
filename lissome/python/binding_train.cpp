// Training for Python: takes a program and a dataset, returns weights by name and a record.
#include <ATen/core/Tensor.h>

#include "lissome/compare.h"
#include "lissome/loader.h"
#include "lissome/python/binding.h"
#include "lissome/python/python_source.h"
#include "lissome/train.h"

namespace lissome {
namespace {

// Reads a field if the caller gave it under its own name; else it keeps its default.
template <typename T>
void read_option(const py::dict& given, const char* name, T& to) {
  if (given.contains(name) && !given[name].is_none()) to = given[name].cast<T>();
}

template <typename Kind>
OptimizerOptions read_optimizer_of(const py::dict& given) {
  Kind kind;
  read_option(given, "weight_decay", kind.weight_decay);
  if constexpr (requires { kind.beta1; })
    read_option(given, "beta1", kind.beta1), read_option(given, "beta2", kind.beta2);
  if constexpr (requires { kind.eps; }) read_option(given, "eps", kind.eps);
  if constexpr (requires { kind.states_8bit; }) read_option(given, "states_8bit", kind.states_8bit);
  if constexpr (requires { kind.momentum; }) {
    read_option(given, "momentum", kind.momentum);
    read_option(given, "dampening", kind.dampening);
    read_option(given, "nesterov", kind.nesterov);
  }
  return kind;
}

OptimizerOptions read_optimizer(const std::string& name, const py::dict& given) {
  if (name == "adamw") return read_optimizer_of<AdamW>(given);
  if (name == "adam") return read_optimizer_of<Adam>(given);
  if (name == "sgd") return read_optimizer_of<Sgd>(given);
  if (name == "lion") return read_optimizer_of<Lion>(given);
  if (name == "adafactor") return read_optimizer_of<Adafactor>(given);
  throw_error(ErrorKind::usage, "optimizer must be adamw, adam, sgd, lion or adafactor, not ", quote(name));
}

BadSamples read_bad_samples(const std::string& word) {
  if (word != "fatal" && word != "skip")
    throw_error(ErrorKind::usage, "bad_samples must be fatal or skip, not ", quote(word));
  return word == "skip" ? BadSamples::skip : BadSamples::fatal;
}

TrainOptions read_options(const Program& model, const py::dict& given) {
  TrainOptions options;
  options.loss = parse_loss(given["loss"].cast<std::string>(), model);
  read_option(given, "label_smoothing", options.loss.label_smoothing);
  read_option(given, "ignored_label", options.loss.ignored_label);
  read_option(given, "class_weights", options.loss.class_weights);
  options.optimizer = read_optimizer(given["optimizer"].cast<std::string>(), given["optimizer_options"]);
  read_option(given, "schedule", options.schedule);
  read_option(given, "epochs", options.epochs);
  if (!given["batch"].is_none()) options.batch = given["batch"].cast<int64_t>();
  if (given["batch"].is_none()) options.batch = 0;  // as many samples as fit
  read_option(given, "accumulate", options.accumulate);
  options.precision = parse_precision(given["precision"].cast<std::string>());
  const Recompute recompute = parse_recompute(given["recompute"].cast<std::string>());
  if (!given["memory"].is_none()) {
    options.memory = given["memory"].cast<int64_t>();
    options.recompute = recompute;
  }
  if (!given["workers"].is_none()) options.batches.workers = given["workers"].cast<int>();
  read_option(given, "transforms", options.batches.transforms);
  read_option(given, "pin_memory", options.batches.pin_memory);
  options.batches.bad_samples = read_bad_samples(given["bad_samples"].cast<std::string>());
  read_option(given, "clip", options.clip_norm);
  read_option(given, "update_in_backward", options.update_in_backward);
  read_option(given, "lossy_activations", options.lossy_activations);
  read_option(given, "offload", options.offload);
  read_option(given, "threads", options.threads);
  read_option(given, "seed", options.seed);
  if (!given["lr"].is_none()) options.learning_rate = given["lr"].cast<double>();
  if (!given["early_stop"].is_none()) options.early_stop = {.patience = given["early_stop"].cast<int64_t>()};
  for (const py::handle& pattern : given["freeze"]) {
    ParameterGroup group;
    group.pattern = pattern.cast<std::string>();
    group.frozen = true;
    options.groups.push_back(std::move(group));
  }
  return options;
}

py::dict describe_epoch(const EpochRecord& epoch) {
  py::dict row;
  row["epoch"] = epoch.epoch;
  row["loss"] = epoch.loss;
  row["learning_rate"] = epoch.learning_rate;
  row["seconds"] = epoch.seconds;
  row["validation_loss"] = epoch.validation_loss;
  for (const auto& [name, value] : epoch.validation_metrics) row[py::str("validation_" + name)] = value;
  return row;
}

py::dict describe_record(const TrainRecord& record) {
  py::dict described;
  py::list epochs;
  for (const EpochRecord& epoch : record.epochs) epochs.append(describe_epoch(epoch));
  described["epochs"] = std::move(epochs);
  described["steps"] = record.steps;
  described["skipped_steps"] = record.skipped_steps;
  described["batch"] = record.batch;
  described["peak_memory"] = record.peak_memory;
  described["notes"] = record.notes;
  py::dict metrics;
  for (const auto& [name, value] : record.training_metrics) metrics[py::str(name)] = value;
  described["training_metrics"] = std::move(metrics);
  described["interrupted"] = record.interrupted;
  described["stopped_early"] = record.stopped_early;
  return described;
}

py::dict describe_bytes(const BudgetTrial& trial, int64_t weights, int64_t step, int64_t all) {
  py::dict bytes;
  bytes["weights"] = weights;
  bytes["gradients"] = trial.fixed.gradients;
  bytes["states"] = trial.fixed.states;
  bytes["batch"] = trial.batch_bytes;
  bytes["activations"] = step;
  bytes["all"] = all;
  return bytes;
}

// Repeats a value under its name in an earlier version. An old name goes with the next version.
void repeat_old_key(py::dict& described, const char* name, const char* old_name) {
  described[old_name] = described[name];
}

py::dict describe_trial(const BudgetTrial& trial) {
  py::dict described;
  described["budget"] = trial.memory;
  described["notice"] = trial.notice;
  described["method"] = trial.predicted.method;
  described["nodes_recomputed"] = trial.predicted.recomputed_nodes;
  described["stored_lossy"] = trial.predicted.stored_lossy;
  described["offloaded"] = trial.predicted.offloaded;
  described["offloaded_bytes"] = trial.predicted.offloaded_bytes;
  described["weights_in_file"] = trial.fixed.offloaded;
  described["weights_in_file_at_once"] = trial.fixed.offloaded_at_once;
  described["seconds_predicted"] = trial.predicted.seconds;
  described["seconds_predicted_keeping_all"] = trial.predicted.plain_seconds;
  described["seconds"] = trial.seconds.median;
  const int64_t weights = trial.fixed.weights + trial.fixed.saved();
  described["bytes_keeping_all"] = describe_bytes(trial, weights, trial.predicted.plain.total(), trial.keeping_all());
  described["bytes_predicted"] =
      describe_bytes(trial, trial.fixed.weights, trial.predicted.chosen.total(), trial.all_predicted());
  described["bytes"] = describe_bytes(trial, trial.weights_measured, trial.measured.total(), trial.all_measured());
  py::list modules;
  for (const ModuleForecast& row : trial.predicted.modules) {
    py::dict module;
    module["module"] = row.module;
    module["kept"] = row.kept;
    module["recomputed"] = row.recomputed;
    repeat_old_key(module, "recomputed", "made_again");
    module["seconds"] = row.recompute_seconds;
    modules.append(module);
  }
  described["modules"] = std::move(modules);
  repeat_old_key(described, "nodes_recomputed", "nodes_run_again");
  repeat_old_key(described, "seconds_predicted", "seconds_told");
  repeat_old_key(described, "seconds_predicted_keeping_all", "seconds_told_keeping_all");
  repeat_old_key(described, "bytes_predicted", "bytes_told");
  return described;
}

// The weights and the state that training changed, under PyTorch's names.
std::vector<std::pair<std::string, at::Tensor>> list_weights(const Program& model) {
  std::vector<std::pair<std::string, at::Tensor>> weights;
  for (const Weight& weight : model.weights) {
    if (weight.role != WeightRole::constant) weights.emplace_back(weight.name, weight.tensor);
  }
  return weights;
}

py::tuple train_program(const Program& model, const Dataset& data, const Dataset* validation, const py::dict& given,
                        const py::object& progress) {
  TrainOptions options = read_options(model, given);
  const WorkControl control = make_control(progress);
  options.callbacks.on_planning = control.on_progress;
  const py::object source = given["source"];
  std::optional<Trained> trained;
  {
    const py::gil_scoped_release released;
    const std::vector<DataSignature> signature = describe_inputs(model);
    if (!source.is_none()) options.batches.source = make_python_source(source, signature, options.batches);
    const auto fit = [&](Dataset dataset) { return fit_batches(std::move(dataset), signature, options.batches); };
    const Dataset fitted = fit(data);
    std::optional<Dataset> fitted_validation;
    if (validation != nullptr) fitted_validation = fit(match_dataset(*validation, data));
    trained = train(model, fitted, fitted_validation ? &*fitted_validation : nullptr, options, control);
  }
  return py::make_tuple(std::move(trained->program), describe_record(trained->record), list_weights(model));
}

py::dict budget_program(const Program& model, const Dataset& data, const py::dict& given) {
  const TrainOptions options = read_options(model, given);
  if (!options.precision)
    throw_error(ErrorKind::usage, "precision is 'auto', which train measures; a budget is for f32, bf16 or fp16");
  BudgetTrial trial;
  {
    const py::gil_scoped_release released;
    trial = try_budget(model, fit_batches(data, describe_inputs(model), options.batches), options);
  }
  return describe_trial(trial);
}

}  // namespace

void bind_training(py::module_& module) {
  py::class_<MemoryProbe>(module, "MemoryProbe")
      .def(py::init([] {
        meter_allocations();
        return std::make_unique<MemoryProbe>();
      }))
      .def("finish", [](MemoryProbe& probe) {
        const MemoryUse use = probe.finish();
        return std::pair(use.peak, use.kept);
      });
  module.def("train", &train_program);
  module.def("budget", &budget_program);
  module.def("save_program", &save_program, py::call_guard<py::gil_scoped_release>());
}

}  // namespace lissome
