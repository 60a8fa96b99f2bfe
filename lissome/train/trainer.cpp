// See trainer.h.
#include "lissome/train/trainer.h"

#include <ATen/Context.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "lissome/pass.h"
#include "lissome/train/schedule.h"
#include "lissome/train/training_step.h"

namespace lissome {
namespace {

constexpr int64_t kExampleSamples = 3;  // with which gradients are recorded

at::Tensor to_tensor(const Array& array) {
  return at::from_blob(array.storage.get(), array.sizes, [kept = array.storage](void*) {}, scalar_type_of(array.dtype));
}

// The inputs of a program with its loss: the model's, then labels where the loss wants them.
std::vector<at::Tensor> take_inputs(const Dataset& data, int64_t first, int64_t count, size_t inputs) {
  std::vector<at::Tensor> tensors;
  for (const NamedArray& column : take_batch(data, first, count)) tensors.push_back(to_tensor(column.array));
  if (tensors.size() < inputs) tensors.push_back(to_tensor(take_labels(data, first, count)));
  return tensors;
}

// Nothing where any size will do.
std::optional<int64_t> fixed_batch(const Program& model) {
  const ValueType& type = model.value(model.inputs.at(0).value).type;
  return type.sizes.empty() ? std::nullopt : type.sizes[0].constant();
}

Program attach_loss_for(const Program& model, const LossOptions& loss, const Dataset& data) {
  if (loss.kind != LossKind::output && !data.labels)
    throw_error(ErrorKind::invalid_input, data.source, ": there are no labels, which this loss needs");
  if (!data.labels) return attach_loss(model, loss, Dtype::f32, {});
  const Sizes& sizes = data.labels->sizes;
  return attach_loss(model, loss, data.labels->dtype, {sizes.begin() + 1, sizes.end()});
}

// Classes of the scores that cross entropy compares; nothing for other losses.
std::optional<int64_t> count_classes(const Program& with_loss, const LossOptions& loss) {
  if (loss.kind != LossKind::cross_entropy) return std::nullopt;
  for (const Node& node : with_loss.nodes) {
    if (!node.is("aten::cross_entropy_loss")) continue;
    const ValueType& scores = with_loss.value(node.argument("self").value()).type;
    if (scores.sized && scores.sizes.size() > 1) return scores.sizes[1].constant();
  }
  return std::nullopt;
}

void check_labels(const Dataset& data, const LossOptions& loss, std::optional<int64_t> classes) {
  if (!classes) return;
  const Array labels = take_labels(data, 0, data.samples());
  const auto* numbers = labels.data<int64_t>();
  const int64_t each = labels.elements() / std::max<int64_t>(data.samples(), 1);
  for (int64_t i = 0; i < labels.elements(); ++i) {
    if ((numbers[i] >= 0 && numbers[i] < *classes) || numbers[i] == loss.ignored_label) continue;
    throw_error(ErrorKind::invalid_input, data.source, ": sample ", data.rows[static_cast<size_t>(i / each)],
                " has the label ", numbers[i], "; the model's classes are 0 to ", *classes - 1);
  }
}

Program attach_checked_loss(const Program& model, const Dataset& data, const Dataset* validation,
                            const LossOptions& loss) {
  Program with_loss = attach_loss_for(model, loss, data);
  const std::optional<int64_t> classes = count_classes(with_loss, loss);
  check_labels(data, loss, classes);
  if (validation != nullptr) check_labels(*validation, loss, classes);
  return with_loss;
}

Program make_eval_form(Program program) {
  convert_to_inference(program);
  return program;
}

void shuffle_rows(std::vector<int64_t>& rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random() % i]);
}

// The share of labels that the largest score names; nothing where outputs are no scores of classes.
std::optional<double> count_correct(const at::Tensor& scores, const at::Tensor& labels) {
  if (labels.scalar_type() != at::kLong || scores.dim() != 2 || labels.dim() != 1) return std::nullopt;
  return scores.argmax(1).eq(labels).sum().item().toDouble();
}

// "aten::log of head (net.py:12)": the first node whose result is not finite although its inputs are given.
std::string find_nonfinite_node(const Program& program, const std::vector<at::Tensor>& inputs) {
  std::string found;
  InterpretOptions options;
  options.observe = [&](const Node& node, std::span<const c10::IValue> results) {
    for (const c10::IValue& result : results) {
      const bool floating = result.isTensor() && result.toTensor().defined() && result.toTensor().is_floating_point();
      if (found.empty() && floating && !at::isfinite(result.toTensor()).all().item().toBool()) {
        found = node.op.name();
        if (node.origin && !node.origin->module.empty()) found += " of " + node.origin->module;
        if (node.origin && !node.origin->source.empty()) found += " (" + node.origin->source + ")";
      }
    }
  };
  interpret(program, {inputs.begin(), inputs.end()}, options);
  return found.empty() ? "no node of this batch alone" : found;
}

class Trainer {
 public:
  Trainer(const Program& model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
          const WorkControl& control)
      : model_(model),
        with_loss_(attach_checked_loss(model, data, validation, options.loss)),
        eval_(make_eval_form(with_loss_)),
        data_(data),
        validation_(validation),
        options_(options),
        control_(control),
        batch_(choose_batch()),
        step_(with_loss_, take_inputs(data, 0, fixed_batch(model).value_or(std::min(kExampleSamples, batch_)),
                                      with_loss_.inputs.size())),
        optimizer_(list_parameters(), options.optimizer, options.groups),
        schedule_(parse_schedule(options.schedule,
                                 {learning_rate(), options.epochs * steps_per_epoch(), steps_per_epoch()})) {
    if (!model.training) {
      record_.notes.emplace_back(
          "the model was exported in eval mode: batch norm stays as it is and dropout is absent. Export it in train "
          "mode "
          "to train them too: torch.export.export(model.train(), ...)");
    }
  }

  TrainRecord run() {
    at::manual_seed(options_.seed);
    std::optional<EarlyStop> early_stop;
    if (options_.early_stop) early_stop.emplace(list_tensors(), *options_.early_stop);
    for (int64_t epoch = 1; epoch <= options_.epochs && !record_.interrupted && !record_.stopped_early; ++epoch) {
      run_epoch(epoch);
      const EpochRecord& done = record_.epochs.back();
      const double metric = done.validation_loss.value_or(done.loss);
      schedule_.observe(metric);
      if (!early_stop || record_.interrupted) continue;
      early_stop->observe(metric);
      record_.stopped_early = early_stop->should_stop();
    }
    if (early_stop) early_stop->restore_best();
    return std::move(record_);
  }

 private:
  int64_t choose_batch() {
    if (data_.samples() == 0) throw_error(ErrorKind::invalid_input, data_.source, ": there are no samples");
    const std::optional<int64_t> fixed = fixed_batch(model_);
    if (fixed && *fixed != options_.batch) {
      record_.notes.push_back("the model has a fixed batch size of " + std::to_string(*fixed) +
                              ", which is taken; samples that fill no batch are left out of their epoch");
    }
    if (fixed && *fixed > data_.samples())
      throw_error(ErrorKind::invalid_input, data_.source, ": ", data_.samples(),
                  " samples fill no batch; the model takes ", *fixed, " at once");
    return fixed.value_or(std::min(options_.batch, data_.samples()));
  }

  int64_t steps_per_epoch() const {
    return fixed_batch(model_) ? data_.samples() / batch_ : (data_.samples() + batch_ - 1) / batch_;
  }

  double learning_rate() const {
    return options_.learning_rate.value_or(std::visit([](const auto& kind) { return kind.lr; }, options_.optimizer));
  }

  std::vector<Parameter> list_parameters() const {
    std::vector<Parameter> parameters;
    for (const std::string& name : step_.names())
      parameters.push_back({name, step_.program().find_weight(name)->tensor, {}});
    return parameters;
  }

  // What early stopping keeps: weights and running statistics.
  std::vector<at::Tensor> list_tensors() const {
    std::vector<at::Tensor> tensors;
    for (const Weight& weight : step_.program().weights) {
      if (weight.role != WeightRole::constant) tensors.push_back(weight.tensor);
    }
    return tensors;
  }

  void run_epoch(int64_t epoch) {
    const Stopwatch watch;
    Dataset shuffled = data_;
    shuffle_rows(shuffled.rows, options_.seed + static_cast<uint64_t>(epoch));
    EpochRecord record{.epoch = epoch, .validation_loss = {}, .validation_accuracy = {}};
    double losses = 0;
    int64_t samples = 0;
    for (int64_t i = 0; i < steps_per_epoch() && !record_.interrupted; ++i) {
      const int64_t first = i * batch_, count = std::min(batch_, data_.samples() - first);
      losses += run_step(shuffled, first, count, record) * static_cast<double>(count);
      samples += count;
      report(epoch, i + 1, losses / static_cast<double>(samples));
      record_.interrupted = control_.stopped();
    }
    record.loss = losses / static_cast<double>(samples);
    if (validation_ != nullptr && !record_.interrupted) validate(record);
    record.seconds = watch.seconds();
    record_.epochs.push_back(record);
  }

  double run_step(const Dataset& shuffled, int64_t first, int64_t count, EpochRecord& record) {
    const std::vector<at::Tensor> inputs = take_inputs(shuffled, first, count, with_loss_.inputs.size());
    const double loss = step_.run(inputs).at(0).item().toDouble();
    if (!std::isfinite(loss))
      throw_error(ErrorKind::invalid_input, "the loss became ", loss, " at step ", record_.steps + 1,
                  "; the first node that made it: ", find_nonfinite_node(step_.program(), inputs),
                  ". Lower --lr, or look at that batch");
    const RatePoint rate = schedule_.at(record_.steps);
    const StepResult result = optimizer_.step(
        step_.gradients(), {.lr = rate.learning_rate, .momentum = rate.momentum, .clip_norm = options_.clip_norm});
    record.learning_rate = rate.learning_rate;
    record_.skipped_steps += result.skipped ? 1 : 0;
    ++record_.steps;
    return loss;
  }

  void report(int64_t epoch, int64_t step, double loss) {
    const double done = static_cast<double>(record_.steps) / static_cast<double>(options_.epochs * steps_per_epoch());
    const double rate = static_cast<double>(record_.steps) / watch_.seconds();
    char message[160];
    std::snprintf(message, sizeof message, "epoch %lld of %lld, step %lld of %lld, loss %.4f, %.0f samples a second",
                  static_cast<long long>(epoch), static_cast<long long>(options_.epochs), static_cast<long long>(step),
                  static_cast<long long>(steps_per_epoch()), loss, rate * static_cast<double>(batch_));
    control_.report({"training", message, done, watch_.seconds() * (1 - done) / done});
  }

  // With the weights as they are now.
  void validate(EpochRecord& record) {
    double losses = 0, correct = 0;
    int64_t samples = 0;
    bool classes = true;
    const int64_t last = fixed_batch(model_) ? validation_->samples() / batch_ * batch_ : validation_->samples();
    for (int64_t first = 0; first < last; first += batch_) {
      const int64_t count = std::min(batch_, last - first);
      const std::vector<at::Tensor> inputs = take_inputs(*validation_, first, count, with_loss_.inputs.size());
      const auto outputs = interpret(eval_, {inputs.begin(), inputs.end()});
      losses += outputs.at(0).toTensor().item().toDouble() * static_cast<double>(count);
      samples += count;
      const auto right = outputs.size() > 1 && outputs[1].isTensor() && inputs.size() > model_.inputs.size()
                             ? count_correct(outputs[1].toTensor(), inputs.back())
                             : std::nullopt;
      classes = classes && right.has_value();
      correct += right.value_or(0);
    }
    if (samples == 0) return;
    record.validation_loss = losses / static_cast<double>(samples);
    if (classes) record.validation_accuracy = correct / static_cast<double>(samples);
  }

  const Program& model_;
  const Program with_loss_;
  const Program eval_;  // the same in eval form, over the same weights
  const Dataset& data_;
  const Dataset* validation_;
  const TrainOptions& options_;
  const WorkControl& control_;
  TrainRecord record_;
  const int64_t batch_;
  TrainingStep step_;
  Optimizer optimizer_;
  Schedule schedule_;
  Stopwatch watch_;
};

}  // namespace

Trained train(const Program& model, const Dataset& data, const Dataset* validation, const TrainOptions& options,
              const WorkControl& control) {
  if (options.initialize) {
    if (!model.training)
      throw_error(
          ErrorKind::invalid_input,
          "training from scratch needs the model in train form: export it with torch.export.export(model.train(), "
          "...)");
    initialize_weights(model, *options.initialize);
  }
  Trained trained;
  trained.record = Trainer(model, data, validation, options, control).run();
  trained.program = make_eval_form(model);
  return trained;
}

}  // namespace lissome
