// See result_sizes.h.
#include "lissome/program/check/result_sizes.h"

#include <algorithm>
#include <array>
#include <string>

#include "lissome/program/check/op_among.h"

namespace lissome {
namespace {

// Ops whose first result has the sizes of the first operand.
constexpr std::array kLikeOperand = {"aten::layer_norm",        "aten::native_layer_norm",
                                     "aten::group_norm",        "aten::native_group_norm",
                                     "aten::instance_norm",     "aten::batch_norm",
                                     "aten::native_batch_norm", "aten::_native_batch_norm_legit_functional",
                                     "aten::hardswish",         "aten::lift_fresh_copy",
                                     "aten::rms_norm",          "aten::local_response_norm"};
constexpr std::array kConvolutions = {
    "aten::conv1d",       "aten::conv2d",           "aten::conv3d",           "aten::convolution",
    "aten::_convolution", "aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d",
};

// Small enough that no formula here overflows.
bool is_small(int64_t number) { return number >= 0 && number <= INT32_MAX; }

std::optional<Sizes> find_operand(const Node& node, const char* name, const FindSizes& find_sizes) {
  const int position = node.op.argument_index(name);
  if (position < 0 || !node.arguments[static_cast<size_t>(position)].is_value()) return std::nullopt;
  return find_sizes(node.arguments[static_cast<size_t>(position)].value());
}

// One number for each spatial dimension; a list of one number, and a number, count for all. `absent` for an argument
// that the op does not have.
std::optional<Sizes> read_numbers(const Node& node, const char* name, size_t spatial, int64_t absent) {
  const int position = node.op.argument_index(name);
  if (position < 0) return Sizes(spatial, absent);
  const Argument& argument = node.arguments[static_cast<size_t>(position)];
  const ArgumentList alone = {argument};
  Sizes numbers;
  for (const Argument& one : argument.is_list() ? argument.list() : alone) {
    const auto* number = one.get<int64_t>();
    if (number == nullptr || !is_small(*number)) return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.size() == 1) numbers.assign(spatial, numbers[0]);
  return numbers.size() == spatial ? std::optional(numbers) : std::nullopt;
}

bool is_transposed(const Node& node) {
  if (node.op.name().starts_with("aten::conv_transpose")) return true;
  return node.op.argument_index("transposed") >= 0 && node.argument("transposed") == Argument(true);
}

std::optional<Sizes> infer_convolution(const Node& node, const FindSizes& find_sizes) {
  const std::optional<Sizes> x = find_sizes(node.arguments.at(0).value()), w = find_operand(node, "weight", find_sizes);
  if (!x || !w || w->size() < 3 || (x->size() != w->size() && x->size() + 1 != w->size())) return std::nullopt;
  const size_t spatial = w->size() - 2, first = x->size() - spatial;
  const auto stride = read_numbers(node, "stride", spatial, 1), padding = read_numbers(node, "padding", spatial, 0),
             dilation = read_numbers(node, "dilation", spatial, 1),
             further = read_numbers(node, "output_padding", spatial, 0);
  const auto* groups = node.argument("groups").get<int64_t>();
  if (!stride || !padding || !dilation || !further || groups == nullptr || !is_small(*groups)) return std::nullopt;
  if (!std::ranges::all_of(*x, is_small) || !std::ranges::all_of(*w, is_small)) return std::nullopt;
  const bool transposed = is_transposed(node);
  Sizes sizes = *x;
  sizes[first - 1] = transposed ? (*w)[1] * *groups : (*w)[0];
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = (*dilation)[i] * ((*w)[i + 2] - 1), size = (*x)[first + i];
    if ((*stride)[i] < 1) return std::nullopt;
    sizes[first + i] = transposed ? (size - 1) * (*stride)[i] - 2 * (*padding)[i] + reach + (*further)[i] + 1
                                  : (size + 2 * (*padding)[i] - reach - 1) / (*stride)[i] + 1;
  }
  return sizes;
}

std::optional<Sizes> infer_attention(const Node& node, const FindSizes& find_sizes) {
  const auto query = find_operand(node, "query", find_sizes), value = find_operand(node, "value", find_sizes);
  if (!query || !value || query->size() < 2 || value->empty()) return std::nullopt;
  if (query->size() != value->size()) return std::nullopt;  // batches are broadcast
  Sizes sizes = *query;
  sizes.back() = value->back();
  for (size_t i = 0; i + 2 < sizes.size(); ++i) {
    if (sizes[i] != (*value)[i]) return std::nullopt;
  }
  return sizes;
}

}  // namespace

std::optional<Sizes> infer_result_sizes(const Node& node, const FindSizes& find_sizes) {
  if (node.arguments.empty() || !node.arguments[0].is_value()) return std::nullopt;
  if (is_among(kLikeOperand, node.op)) return find_sizes(node.arguments[0].value());
  if (is_among(kConvolutions, node.op)) return infer_convolution(node, find_sizes);
  if (node.is("aten::scaled_dot_product_attention")) return infer_attention(node, find_sizes);
  return std::nullopt;
}

}  // namespace lissome
