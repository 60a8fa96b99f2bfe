#include "lissome/train/step/labels.h"

#include <algorithm>

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
    throw_error(ErrorKind::invalid_input, data.source, ": sample ", data.rows[sample], " has the label ", numbers[i],
                "; the model's classes are 0 to ", *classes - 1);
  }
}

}  // namespace

Program attach_checked_loss(const Program& model, const Dataset& data, const Dataset* validation,
                            const TrainOptions& options, int64_t batch) {
  Program with_loss = attach_loss_for(model, data, options, batch);
  const std::optional<int64_t> classes = count_classes(with_loss, options);
  check_labels(data, options.loss, classes);
  if (validation != nullptr) check_labels(*validation, options.loss, classes);
  return with_loss;
}

}  // namespace lissome
