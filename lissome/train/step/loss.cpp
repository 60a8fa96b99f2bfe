// See loss.h. Losses are ATen's ops, so that their gradients are PyTorch's.
#include "lissome/train/step/loss.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

namespace lissome {
namespace {

constexpr std::string_view kNames[] = {"cross_entropy", "mse", "l1", "huber", "bce", "bce_logits"};
constexpr int64_t kMean = 1;  // at::Reduction::Mean

std::string print_sizes(const std::vector<Dimension>& sizes) {
  std::string text = "[";
  for (const Dimension& size : sizes) text += (text.size() > 1 ? ", " : "") + size.print();
  return text + "]";
}

class LossBuilder {
 public:
  LossBuilder(const Program& model, const LossOptions& options, Dtype label_dtype, const Sizes& label_sizes)
      : program_(model), options_(options), label_dtype_(label_dtype), scores_(find_output()) {
    label_sizes_.push_back(batch());
    label_sizes_.insert(label_sizes_.end(), label_sizes.begin(), label_sizes.end());
  }

  Program build() {
    const ValueId loss = options_.kind == LossKind::output ? take_scalar() : add_loss();
    program_.outputs.insert(program_.outputs.begin(), {loss, "loss"});
    if (options_.kind == LossKind::output) {
      std::erase_if(program_.outputs, [&](const ProgramOutput& output) {
        return output.value == Argument(loss) && output.name != "loss";
      });
    }
    return std::move(program_);
  }

 private:
  ValueId find_output() const {
    for (const ProgramOutput& output : program_.outputs) {
      const bool wanted = options_.output.empty() || output.name == options_.output;
      if (wanted && output.value.is_value()) return output.value.value();
    }
    throw_error(ErrorKind::invalid_input, "the model has no output '", options_.output, "' for the loss");
  }

  const ValueType& scores() const { return program_.value(scores_).type; }

  Dimension batch() const {
    if (scores().kind != ValueKind::tensor || !scores().sized)
      throw_error(ErrorKind::invalid_input, "the sizes of the output for the loss are not known");
    return scores().sizes.empty() ? Dimension(1) : scores().sizes[0];
  }

  ValueId take_scalar() {
    if (!scores().sizes.empty())
      throw_error(ErrorKind::invalid_input, "output '", options_.output, "' has the sizes ",
                  print_sizes(scores().sizes), "; a loss must be one number");
    return scores_;
  }

  ValueId add_labels() { return program_.add_input("labels", {ValueKind::tensor, label_dtype_, true, label_sizes_}); }

  ValueId add(std::string_view op, ArgumentList arguments, std::vector<Dimension> sizes) {
    const ValueType type{ValueKind::tensor, scores().dtype, true, std::move(sizes)};
    return program_.add_node(Op::find(op), std::move(arguments), {type}).result();
  }

  ValueId add_loss() {
    if (options_.kind == LossKind::cross_entropy)
      return is_floating(label_dtype_) ? add_soft_cross_entropy() : add_cross_entropy();
    if (drop_ones(label_sizes_) != drop_ones(scores().sizes))
      throw_error(ErrorKind::invalid_input, "the labels have the sizes ", print_sizes(label_sizes_), ", the output ",
                  print_sizes(scores().sizes), "; this loss needs equal sizes",
                  is_floating(label_dtype_) ? "" : ". Class numbers are for cross_entropy");
    const ValueId labels = add_targets();
    switch (options_.kind) {
      case LossKind::mse: return add("aten::mse_loss", {scores_, labels, kMean}, {});
      case LossKind::l1: return add("aten::l1_loss", {scores_, labels, kMean}, {});
      case LossKind::huber: return add("aten::huber_loss", {scores_, labels, kMean, options_.delta}, {});
      case LossKind::bce: return add("aten::binary_cross_entropy", {scores_, labels, {}, kMean}, {});
      default: return add("aten::binary_cross_entropy_with_logits", {scores_, labels, {}, {}, kMean}, {});
    }
  }

  // Targets that are stored as integers are compared as numbers.
  ValueId add_targets() {
    ValueId labels = add_labels();
    // ATen promotes types in some of these losses alone.
    const bool promotes = options_.kind != LossKind::huber && options_.kind != LossKind::bce;
    const bool is_cast = !is_floating(label_dtype_) || (!promotes && label_dtype_ != scores().dtype);
    if (is_cast) labels = add("aten::_to_copy", {labels, scores().dtype}, label_sizes_);
    if (label_sizes_ == scores().sizes) return labels;
    const Dtype dtype = is_cast ? scores().dtype : label_dtype_;
    std::vector<Dimension> sizes = label_sizes_;
    const auto reshape = [&](std::string_view op, size_t dim) {
      labels = add(op, {labels, static_cast<int64_t>(dim)}, sizes);
      program_.value(labels).type.dtype = dtype;
    };
    for (size_t dim = sizes.size(); dim-- > 1;) {
      if (sizes[dim] != Dimension(1)) continue;
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
      reshape("aten::squeeze.dim", dim);
    }
    for (size_t dim = 1; dim < scores().sizes.size(); ++dim) {
      if (scores().sizes[dim] != Dimension(1)) continue;
      sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), Dimension(1));
      reshape("aten::unsqueeze", dim);
    }
    return labels;
  }

  // The labels are a probability for each class, along the second dimension.
  ValueId add_soft_cross_entropy() {
    if (label_sizes_ != scores().sizes || scores_rank() < 2)
      throw_error(
          ErrorKind::invalid_input, "the labels hold ", dtype_name(label_dtype_), " with the sizes ",
          print_sizes(label_sizes_), ", the output has ", print_sizes(scores().sizes),
          "; cross entropy takes class numbers (integers), or a probability for each class in the output's sizes");
    if (options_.ignored_label >= 0)
      throw_error(ErrorKind::invalid_input, "label ", options_.ignored_label,
                  " cannot be ignored, because the labels are probabilities, not class numbers");
    return add(
        "aten::cross_entropy_loss",
        {scores_, add_labels(), add_class_weights(scores().sizes[1]), kMean, int64_t{-100}, options_.label_smoothing},
        {});
  }

  // ATen takes classes as the second dimension; a language model gives them as the last.
  ValueId add_cross_entropy() {
    if (label_dtype_ != Dtype::i64)
      throw_error(ErrorKind::invalid_input, "the labels hold ", dtype_name(label_dtype_),
                  "; cross entropy takes class numbers, i64");
    std::vector<Dimension> second = scores().sizes, last = scores().sizes;
    if (second.size() >= 2) second.erase(second.begin() + 1), last.pop_back();
    ValueId scores = scores_;
    Argument labels;
    Dimension classes = 1;
    if (label_sizes_ == second && second.size() != scores_rank()) {
      classes = this->scores().sizes[1];
      labels = add_labels();
    } else if (label_sizes_ == last && last.size() != scores_rank()) {
      classes = this->scores().sizes.back();
      labels = add("aten::flatten.using_ints", {add_labels(), int64_t{0}, int64_t{-1}}, {});
      program_.value(labels.value()).type = {ValueKind::tensor, Dtype::i64, false, {}};
      scores = add("aten::flatten.using_ints", {scores_, int64_t{0}, int64_t{-2}}, {});
      program_.value(scores).type = {ValueKind::tensor, this->scores().dtype, false, {}};
    } else {
      throw_error(ErrorKind::invalid_input, "the labels have the sizes ", print_sizes(label_sizes_), ", the output ",
                  print_sizes(this->scores().sizes), "; cross entropy takes labels of the output's sizes without the ",
                  "size of the classes, which is the second or the last");
    }
    return add("aten::cross_entropy_loss",
               {scores, labels, add_class_weights(classes), kMean, options_.ignored_label, options_.label_smoothing},
               {});
  }

  size_t scores_rank() const { return scores().sizes.size(); }

  Argument add_class_weights(const Dimension& classes) {
    const std::vector<double>& weights = options_.class_weights;
    if (weights.empty()) return {};
    if (Dimension(static_cast<int64_t>(weights.size())) != classes)
      throw_error(ErrorKind::invalid_input, "there are ", weights.size(), " class weights for ", classes.print(),
                  " classes");
    const bool usable = std::ranges::all_of(weights, [](double w) { return w >= 0 && std::isfinite(w); }) &&
                        std::ranges::any_of(weights, [](double w) { return w > 0; });
    if (!usable)
      throw_error(ErrorKind::usage, "class weights must be finite numbers from 0 on, at least one of them above 0");
    return program_.add_weight("loss.class_weights", at::tensor(weights, scalar_type_of(scores().dtype)),
                               WeightRole::constant);
  }

  Program program_;
  const LossOptions& options_;
  Dtype label_dtype_;
  ValueId scores_;
  std::vector<Dimension> label_sizes_;
};

}  // namespace

LossOptions parse_loss(const std::string& word, const Program& program) {
  LossOptions options;
  const size_t colon = word.find(':');
  const auto* known = std::find(std::begin(kNames), std::end(kNames), word.substr(0, colon));
  if (known != std::end(kNames)) {
    options.kind = static_cast<LossKind>(known - std::begin(kNames));
    if (colon == std::string::npos) return options;
    options.output = word.substr(colon + 1);
    std::vector<std::string> names;
    for (const ProgramOutput& output : program.outputs) names.push_back(output.name);
    if (std::find(names.begin(), names.end(), options.output) != names.end()) return options;
    throw_error(ErrorKind::usage, "the loss ", quote(word), " compares the output ", quote(options.output),
                "; the model's outputs are ", join(names, ", "));
  }
  std::vector<std::string> outputs, all(std::begin(kNames), std::end(kNames));
  for (const ProgramOutput& output : program.outputs) {
    if (output.name == word) return {.kind = LossKind::output, .output = word, .class_weights = {}};
    outputs.push_back(output.name), all.push_back(output.name);
  }
  const std::string nearest = find_nearest(word, all);
  throw_error(ErrorKind::usage, "the loss ", quote(word), " is neither cross_entropy, mse, l1, huber, bce, bce_logits ",
              "nor one of the model's outputs: ", join(outputs, ", "),
              nearest.empty() ? "" : ". Did you mean " + nearest + "?");
}

std::vector<std::string> describe_comparison(const Program& model, const LossOptions& options,
                                             const Sizes& label_sizes) {
  std::vector<std::string> texts, names;
  if (options.kind == LossKind::output) return texts;
  const ProgramOutput* compared = nullptr;
  for (const ProgramOutput& output : model.outputs) {
    if (!output.value.is_value()) continue;
    names.push_back(output.name);
    if (compared == nullptr && (options.output.empty() || options.output == output.name)) compared = &output;
  }
  if (compared == nullptr) return texts;
  const std::string word(kNames[static_cast<size_t>(options.kind)]);
  if (names.size() > 1 && options.output.empty())
    texts.push_back("the loss compares output " + quote(compared->name) + ", the first of " + join_few(names, 8) +
                    "; for another give its name: --loss " + word + ":" + names[1]);
  const std::vector<Dimension>& sizes = model.value(compared->value.value()).type.sizes;
  const bool is_open = options.kind == LossKind::cross_entropy && sizes.size() == 3 && label_sizes.size() == 1 &&
                       sizes[1] == sizes[2] && sizes[1] == Dimension(label_sizes[0]);
  if (is_open)
    texts.push_back("the second and the last dimension of output " + quote(compared->name) + " have " +
                    sizes[1].print() + " elements each; classes are taken to be the second");
  return texts;
}

Program attach_loss(const Program& model, const LossOptions& options, Dtype label_dtype, const Sizes& label_sizes) {
  return LossBuilder(model, options, label_dtype, label_sizes).build();
}

}  // namespace lissome
