// See mask_numbers.h. Bounds follow from literals, weights and bounded functions, through ops that move, choose, add
// and multiply elements. A weight that is trained counts as what it holds now.
#include "lissome/pass/attention/mask_numbers.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "lissome/pass/channel_affine.h"

namespace lissome {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostSteps = 24;
constexpr int64_t kMostElements = int64_t{1} << 24;  // of a weight that is looked at

using Names = std::span<const std::string_view>;

// Elements of the first argument; the others say which and where.
constexpr std::string_view kOfFirst[] = {
    "aten::expand",    "aten::unsqueeze", "aten::squeeze",        "aten::view",   "aten::reshape",
    "aten::flatten",   "aten::permute",   "aten::transpose",      "aten::slice",  "aten::select",
    "aten::index",     "aten::gather",    "aten::index_select",   "aten::clone",  "aten::contiguous",
    "aten::to",        "aten::_to_copy",  "aten::triu",           "aten::tril",   "aten::neg",
    "aten::abs",       "aten::relu",      "aten::repeat",         "aten::flip",   "aten::roll",
    "aten::unflatten", "aten::expand_as", "aten::view_as",        "aten::detach", "aten::embedding",
    "aten::movedim",   "aten::narrow",    "aten::_unsafe_view",   "aten::unbind", "aten::split",
    "aten::chunk",     "aten::alias",     "aten::constant_pad_nd"};
// Elements of any argument, and the numbers among the arguments.
constexpr std::string_view kOfAll[] = {"aten::where",   "aten::masked_fill",  "aten::cat",       "aten::stack",
                                       "aten::clamp",   "aten::clamp_min",    "aten::clamp_max", "aten::maximum",
                                       "aten::minimum", "aten::full",         "aten::full_like", "aten::new_full",
                                       "aten::fill",    "aten::scalar_tensor"};
constexpr std::string_view kSums[] = {"aten::add", "aten::sub", "aten::rsub"};
constexpr std::string_view kWithinOne[] = {"aten::sigmoid",    "aten::tanh",      "aten::sin",       "aten::cos",
                                           "aten::softmax",    "aten::_softmax",  "aten::zeros",     "aten::ones",
                                           "aten::zeros_like", "aten::ones_like", "aten::new_zeros", "aten::new_ones"};
// Infinities of finite numbers.
constexpr std::string_view kMakesInfinity[] = {"aten::log",   "aten::log2",       "aten::log10",      "aten::log1p",
                                               "aten::div",   "aten::reciprocal", "aten::rsqrt",      "aten::pow",
                                               "aten::logit", "aten::atanh",      "aten::true_divide"};
constexpr std::string_view kNumbers[] = {"self", "value", "other", "fill_value", "min", "max", "s"};

bool is_one_of(std::string_view name, Names names) { return std::ranges::find(names, name) != names.end(); }

MaskNumbers of_number(double number) {
  return std::isinf(number) ? MaskNumbers{0, true} : MaskNumbers{std::isnan(number) ? 0 : std::abs(number), false};
}

MaskNumbers join(const MaskNumbers& left, const MaskNumbers& right) {
  return {std::max(left.largest, right.largest), left.has_infinity || right.has_infinity};
}

class Finder {
 public:
  explicit Finder(Rewriter& rewriter) : rewriter_(rewriter) {}

  MaskNumbers find(const Argument& given, int steps) {
    const Argument argument = rewriter_.resolve(given);
    if (const auto number = constant_number(rewriter_, argument)) return of_number(*number);
    if (!argument.is_value()) return {};
    const ValueType& type = rewriter_.type_of(argument);
    if (type.kind == ValueKind::tensor && type.sized && type.dtype == Dtype::boolean) return {1, false};
    if (const auto known = found_.find(argument.value()); known != found_.end()) return known->second;
    const MaskNumbers numbers = find_value(argument.value(), steps);
    found_.emplace(argument.value(), numbers);
    return numbers;
  }

 private:
  MaskNumbers find_value(ValueId value, int steps) {
    if (const Weight* weight = rewriter_.program().find_weight(value)) return of_weight(weight->tensor);
    const Node* node = rewriter_.producer(value);
    if (node == nullptr || steps == 0) return {kInfinity, true};  // an input, say
    return find(*node, steps - 1);
  }

  MaskNumbers find(const Node& node, int steps) {
    const std::string_view name = std::string_view(node.op.name()).substr(0, node.op.name().find('.'));
    if (is_one_of(name, kWithinOne)) return {1, false};
    if (is_one_of(name, kOfFirst)) return find_items(node.arguments[0], steps);
    if (is_one_of(name, kOfAll)) return find_in_all(node, steps);
    if (name == "lissome::getitem") return find_items(node.arguments[0], steps);
    if (!node.op.has_schema()) return {kInfinity, true};
    if (node.arguments.size() < 2 || (name != "aten::mul" && !is_one_of(name, kSums)))
      return {kInfinity, is_one_of(name, kMakesInfinity)};
    const MaskNumbers left = find(node.arguments[0], steps), right = find(node.arguments[1], steps);
    const double both = name == "aten::mul" ? multiply(left.largest, right.largest) : add(node, left, right);
    const bool overflows = std::isfinite(both) && both > std::numeric_limits<float>::max();
    return {both, left.has_infinity || right.has_infinity || overflows};
  }

  static double multiply(double left, double right) { return left == 0 || right == 0 ? 0 : left * right; }

  // alpha scales the second argument, of rsub the first.
  double add(const Node& node, const MaskNumbers& left, const MaskNumbers& right) {
    const int alpha = node.op.argument_index("alpha");
    const auto number = alpha < 0 ? 1.0 : constant_number(rewriter_, node.arguments[static_cast<size_t>(alpha)]);
    const double scale = number ? std::max(std::abs(*number), 1.0) : kInfinity;
    return multiply(scale, left.largest + right.largest);
  }

  // Of a tensor, or of each in a list.
  MaskNumbers find_items(const Argument& argument, int steps) {
    if (!argument.is_list()) return find(argument, steps);
    MaskNumbers found;
    for (const Argument& item : argument.list()) found = join(found, find(item, steps));
    return found;
  }

  MaskNumbers find_in_all(const Node& node, int steps) {
    MaskNumbers found;
    const auto& schema = node.op.schema().arguments();
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const Argument& argument = node.arguments[i];
      const bool is_tensors = argument.is_value() || schema[i].name() == "tensors";
      if (is_tensors || is_one_of(schema[i].name(), kNumbers)) found = join(found, find_items(argument, steps));
    }
    return found;
  }

  static MaskNumbers of_weight(const at::Tensor& tensor) {
    if (tensor.numel() == 0) return {};
    if (tensor.layout() != at::kStrided || tensor.is_complex() || tensor.numel() > kMostElements)
      return {kInfinity, true};
    const at::Tensor numbers = tensor.to(at::kDouble).abs();
    const double largest = numbers.masked_fill(at::isfinite(numbers).logical_not(), 0).max().item<double>();
    return {largest, !is_finite_weight(tensor)};
  }

  Rewriter& rewriter_;
  std::map<ValueId, MaskNumbers> found_;
};

}  // namespace

MaskNumbers find_mask_numbers(Rewriter& rewriter, const Argument& mask) {
  return Finder(rewriter).find(mask, kMostSteps);
}

}  // namespace lissome
