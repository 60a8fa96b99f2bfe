#include "lissome/train/step/labels.h"

#include <algorithm>
#include <cmath>

#include "lissome/train/step/batches.h"

namespace lissome {
namespace {

[[noreturn]] void refuse_missing_labels(const Dataset& data) {
  throw_error(
      ErrorKind::invalid_input, data.source,
      ": there are no labels, but this loss needs labels.\n      Name the array or file that holds them: --labels "
      "NAME, or labels= in Python.");
}

Program attach_loss_for(const Program& model, const Dataset& data, const TrainOptions& options, int64_t batch) {
  if (options.loss_function) {
    const size_t inputs = model.inputs.size() + (data.labels ? 1 : 0);
    return attach_loss_function(model, options.loss_function, take_inputs(data, 0, batch, inputs));
  }
  if (options.loss.kind != LossKind::output && !data.labels) refuse_missing_labels(data);
  if (!data.labels) return attach_loss(model, options.loss, Dtype::f32, {});
  const Sizes& sizes = data.labels->sizes;
  return attach_loss(model, options.loss, data.labels->dtype, {sizes.begin() + 1, sizes.end()});
}

// Cross entropy of floats compares probabilities of classes; libtorch takes any numbers for them.
void check_probabilities(const Dataset& data, const LossOptions& loss) {
  if (!data.labels || loss.kind != LossKind::cross_entropy || !is_floating(data.labels->dtype)) return;
  const Array labels = cast_array(take_labels(data, 0, data.samples()).view(), Dtype::f64);
  const double* numbers = labels.data<double>();
  const int64_t each = labels.elements() / std::max<int64_t>(data.samples(), 1);
  for (int64_t i = 0; i < labels.elements(); ++i) {
    if (numbers[i] >= 0) continue;
    throw_error(
        ErrorKind::invalid_input, data.source, ": sample ", data.rows[static_cast<size_t>(i / each)], " has the label ",
        numbers[i],
        "; with floats as labels, cross entropy compares probabilities of classes, 0 or more.\n      For numbers "
        "give --loss mse, l1 or huber, for several classes at once bce_logits (loss= in Python)");
  }
}

// Cross entropy over one class is 0 whatever the model gives.
void check_scores(const Program& with_loss, const Dataset& data) {
  for (const Node& node : with_loss.nodes) {
    if (!node.is("aten::cross_entropy_loss")) continue;
    const ValueType& scores = with_loss.value(node.argument("self").value()).type;
    if (!scores.sized || scores.sizes.size() < 2 || scores.sizes[1].constant() != 1) continue;
    throw_error(
        ErrorKind::invalid_input, data.source,
        ": cross entropy compares the scores of classes, and the model gives one, so the loss is always 0.\n      "
        "For numbers give --loss mse, l1 or huber, for two classes bce_logits (loss= in Python)");
  }
}

// The number of classes if cross entropy compares scores with class numbers; empty for other losses.
std::optional<int64_t> count_classes(const Program& with_loss, const TrainOptions& options) {
  if (options.loss_function || options.loss.kind != LossKind::cross_entropy) return std::nullopt;
  if (is_floating(with_loss.value(with_loss.inputs.back().value).type.dtype)) return std::nullopt;
  for (const Node& node : with_loss.nodes) {
    if (!node.is("aten::cross_entropy_loss")) continue;
    const ValueType& scores = with_loss.value(node.argument("self").value()).type;
    if (scores.sized && scores.sizes.size() > 1) return scores.sizes[1].constant();
  }
  return std::nullopt;
}

// With label smoothing and class weights, PyTorch's formula has tensors whose size is the number of labels that are not
// ignored. A recorded step cannot have sizes that depend on data.
void refuse_ignored(const Dataset& data, const LossOptions& loss, size_t sample) {
  if (loss.label_smoothing == 0 || loss.class_weights.empty()) return;
  throw_error(ErrorKind::unsupported, data.source, ": sample ", data.rows[sample], " has the ignored label ",
              loss.ignored_label,
              ". Label smoothing together with class weights cannot ignore labels: leave such samples out of the data");
}

void check_labels(const Dataset& data, const LossOptions& loss, std::optional<int64_t> classes) {
  if (!classes) return;
  if (!data.labels) refuse_missing_labels(data);
  const Array labels = take_labels(data, 0, data.samples());
  if (labels.dtype != Dtype::i64)
    throw_error(ErrorKind::invalid_input, data.source, ": the labels hold ", dtype_name(labels.dtype),
                "; this loss compares class numbers, i64, as the other labels are");
  const auto* numbers = labels.data<int64_t>();
  const int64_t each = labels.elements() / std::max<int64_t>(data.samples(), 1);
  if (labels.elements() > 0 &&
      std::all_of(numbers, numbers + labels.elements(), [&](int64_t number) { return number == loss.ignored_label; })) {
    throw_error(ErrorKind::invalid_input, data.source, ": all labels are ", loss.ignored_label,
                ", which the loss ignores: there is nothing to learn from");
  }
  for (int64_t i = 0; i < labels.elements(); ++i) {
    const auto sample = static_cast<size_t>(i / each);
    if (numbers[i] == loss.ignored_label) refuse_ignored(data, loss, sample);
    if ((numbers[i] >= 0 && numbers[i] < *classes) || numbers[i] == loss.ignored_label) continue;
    const bool has_word = numbers[i] >= 0 && std::cmp_less(numbers[i], data.classes.size());
    const std::string word = has_word ? ", '" + data.classes[static_cast<size_t>(numbers[i])] + "'" : "";
    const std::string words = data.classes.empty() ? "" : ", and the data have " + join_few(data.classes, 12);
    throw_error(ErrorKind::invalid_input, data.source, ": sample ", data.rows[sample], " has the label ", numbers[i],
                word, "; the model's classes are 0 to ", *classes - 1, words);
  }
}

}  // namespace

std::string describe_label_sums(const Dataset& data, const LossOptions& loss) {
  if (!data.labels || loss.kind != LossKind::cross_entropy || !is_floating(data.labels->dtype)) return {};
  constexpr double kRounding = 1e-2;  // labels may be f16, or sums of many
  const Array labels = cast_array(take_labels(data, 0, data.samples()).view(), Dtype::f64);
  if (labels.sizes.size() < 2 || labels.elements() == 0) return {};
  const int64_t classes = labels.sizes[1], all = labels.elements() / classes, positions = all / labels.sizes[0];
  int64_t wrong = 0;
  for (int64_t i = 0; i < all; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c)
      sum += labels.data<double>()[(i / positions * classes + c) * positions + i % positions];
    wrong += std::abs(sum - 1) > kRounding;
  }
  if (wrong == 0) return {};
  return std::to_string(wrong) + " of " + std::to_string(all) +
         " labels do not sum to 1 over the classes, though cross entropy takes them for probabilities. --loss "
         "bce_logits is for several classes at once, mse, l1 and huber are for numbers";
}

Program attach_checked_loss(const Program& model, const Dataset& data, const Dataset* validation,
                            const TrainOptions& options, int64_t batch) {
  Program with_loss = attach_loss_for(model, data, options, batch);
  if (!options.loss_function) {
    if (options.loss.kind == LossKind::cross_entropy) check_scores(with_loss, data);
    check_probabilities(data, options.loss);
    if (validation != nullptr) check_probabilities(*validation, options.loss);
  }
  const std::optional<int64_t> classes = count_classes(with_loss, options);
  check_labels(data, options.loss, classes);
  if (validation != nullptr) check_labels(*validation, options.loss, classes);
  return with_loss;
}

}  // namespace lissome
