// One spelling for each meaning, so that every later pattern is written once. Exports come in two dialects: the
// user-level one (conv2d, softmax.int, layer_norm) and the decomposed one (convolution, _softmax, native_layer_norm).
#include <algorithm>
#include <numeric>

#include "lissome/pass/canonicalize_conv.h"
#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// The same op under another name; leading arguments agree, further ones of the second have defaults.
struct Synonym {
  std::string_view from, to;
};
constexpr Synonym kSynonyms[] = {
    {"aten::add.Scalar", "aten::add.Tensor"},
    {"aten::sub.Scalar", "aten::sub.Tensor"},
    {"aten::mul.Scalar", "aten::mul.Tensor"},
    {"aten::div.Scalar", "aten::div.Tensor"},
    {"aten::divide.Tensor", "aten::div.Tensor"},
    {"aten::true_divide.Tensor", "aten::div.Tensor"},
    {"aten::multiply.Tensor", "aten::mul.Tensor"},
    {"aten::subtract.Tensor", "aten::sub.Tensor"},
    {"aten::view", "aten::reshape"},
    {"aten::_unsafe_view", "aten::reshape"},
    {"aten::swapaxes", "aten::transpose.int"},
    {"aten::swapdims", "aten::transpose.int"},
    {"aten::special_erf", "aten::erf"},
    {"aten::special_expit", "aten::sigmoid"},
    {"aten::concat", "aten::cat"},
    {"aten::concatenate", "aten::cat"},
};

bool convert_synonym(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  for (const Synonym& synonym : kSynonyms) {
    if (!node.is(synonym.from)) continue;
    rewriter.replace_node(position, Op::find(synonym.to), node.arguments);
    return true;
  }
  return false;
}

// Ops with further results that nobody reads have a plain form.
bool has_only_first_result(Rewriter& rewriter, const Node& node) {
  return std::all_of(node.results.begin() + 1, node.results.end(),
                     [&](ValueId result) { return result == ValueId::none || rewriter.use_count(result) == 0; });
}

// The op that computes the first result alone, and the names of its leading arguments in the other; nothing more than
// literals follows.
struct PlainForm {
  std::string_view from, to;
  std::vector<std::string_view> arguments;
  ArgumentList literals;
};

const std::vector<PlainForm>& plain_forms() {
  static const std::vector<PlainForm> forms = {
      {"aten::native_layer_norm", "aten::layer_norm", {"input", "normalized_shape", "weight", "bias", "eps"}, {false}},
      {"aten::max_pool2d_with_indices",
       "aten::max_pool2d",
       {"self", "kernel_size", "stride", "padding", "dilation", "ceil_mode"},
       {}},
      {"aten::max_pool3d_with_indices",
       "aten::max_pool3d",
       {"self", "kernel_size", "stride", "padding", "dilation", "ceil_mode"},
       {}},
      {"aten::native_group_norm", "aten::group_norm", {"input", "group", "weight", "bias", "eps"}, {false}},
  };
  return forms;
}

void replace_first_result(Rewriter& rewriter, int position, std::string_view op, ArgumentList arguments) {
  const Node& node = rewriter.node(position);
  const ValueId output = node.results.at(0);
  const ValueType type = rewriter.type_of(output);
  rewriter.replace_value(output,
                         rewriter.insert_before(position, Op::find(op), std::move(arguments), {type}, node.origin));
}

bool convert_to_plain_form(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  for (const PlainForm& form : plain_forms()) {
    if (!node.is(form.from) || node.results[0] == ValueId::none || !has_only_first_result(rewriter, node)) continue;
    ArgumentList arguments;
    for (const std::string_view name : form.arguments) arguments.push_back(node.argument(name));
    arguments.insert(arguments.end(), form.literals.begin(), form.literals.end());
    replace_first_result(rewriter, position, form.to, std::move(arguments));
    return true;
  }
  return false;
}

bool convert_batch_norm(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::_native_batch_norm_legit_no_training") || !has_only_first_result(rewriter, node)) return false;
  replace_first_result(
      rewriter, position, "aten::batch_norm",
      {node.argument("input"), node.argument("weight"), node.argument("bias"), node.argument("running_mean"),
       node.argument("running_var"), false, node.argument("momentum"), node.argument("eps"), false});
  return true;
}

bool convert_attention(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::_scaled_dot_product_flash_attention_for_cpu") || !has_only_first_result(rewriter, node)) {
    return false;
  }
  const auto* dropout = node.argument("dropout_p").get<double>();
  if (dropout == nullptr || *dropout != 0) return false;
  replace_first_result(rewriter, position, "aten::scaled_dot_product_attention",
                       {node.argument("query"), node.argument("key"), node.argument("value"),
                        node.argument("attn_mask"), 0.0, node.argument("is_causal"), node.argument("scale"), false});
  return true;
}

// Softmax in its input's own dtype.
bool convert_softmax(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  const bool logarithm = node.is("aten::_log_softmax");
  if (logarithm || node.is("aten::_softmax")) {
    if (node.argument("half_to_float") != Argument(false)) return false;
    rewriter.replace_node(position, Op::find(logarithm ? "aten::log_softmax.int" : "aten::softmax.int"),
                          {node.argument("self"), node.argument("dim")});
    return true;
  }
  if (!node.is("aten::softmax.int") && !node.is("aten::log_softmax.int")) return false;
  const Dtype* asked = node.argument("dtype").get<Dtype>();
  const ValueType& type = rewriter.type_of(node.argument("self"));
  if (asked == nullptr || type.kind != ValueKind::tensor || type.dtype != *asked) return false;
  rewriter.replace_node(position, node.op, {node.argument("self"), node.argument("dim")});
  return true;
}

// A cast without a move, a layout or a memory format of its own.
bool convert_cast(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::_to_copy") && !node.is("aten::to.dtype_layout") && !node.is("aten::to.device")) return false;
  const auto is_free = [&](std::string_view name, const Argument& usual) {
    const int index = node.op.argument_index(name);
    if (index < 0) return true;
    const Argument& value = node.arguments[static_cast<size_t>(index)];
    return value.is_none() || value == usual;
  };
  if (!is_free("device", Device{"cpu"}) || !is_free("layout", Layout::strided)) return false;
  const ValueType& type = rewriter.type_of(node.result());
  if (type.kind != ValueKind::tensor) return false;
  rewriter.replace_node(position, Op::find("aten::to.dtype"), {node.argument("self"), type.dtype});
  return true;
}

// The permutation that t, mT, numpy_T or movedim stand for.
std::optional<ArgumentList> read_permutation(const Node& node, int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (node.is("aten::numpy_T") || (node.is("aten::t") && rank == 2)) {
    std::reverse(order.begin(), order.end());
  } else if (node.is("aten::mT") && rank >= 2) {
    std::swap(order[order.size() - 1], order[order.size() - 2]);
  } else if (node.is("aten::movedim.int")) {
    const auto* source = node.argument("source").get<int64_t>();
    const auto* target = node.argument("destination").get<int64_t>();
    if (source == nullptr || target == nullptr || rank == 0) return std::nullopt;
    const int64_t from = *source < 0 ? *source + rank : *source, to = *target < 0 ? *target + rank : *target;
    if (std::min(from, to) < 0 || std::max(from, to) >= rank) return std::nullopt;
    order.erase(order.begin() + from);
    order.insert(order.begin() + to, from);
  } else {
    return std::nullopt;
  }
  return ArgumentList(order.begin(), order.end());
}

bool convert_permutation(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (node.arguments.empty() || !rewriter.type_of(node.arguments.front()).sized) return false;
  const auto rank = static_cast<int64_t>(rewriter.type_of(node.arguments.front()).sizes.size());
  const std::optional<ArgumentList> order = read_permutation(node, rank);
  if (!order) return false;
  rewriter.replace_node(position, Op::find("aten::permute"), {node.arguments.front(), *order});
  return true;
}

// flatten, unflatten, view_as and _reshape_alias name the sizes of their result in other ways; written out where they
// are known.
bool convert_reshape(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  const bool renames = node.is("aten::flatten.using_ints") || node.is("aten::unflatten.int") ||
                       node.is("aten::view_as") || node.is("aten::reshape_as") || node.is("aten::_reshape_alias");
  if (!renames || !rewriter.type_of(node.result()).sized) return false;
  const std::optional<ArgumentList> sizes = literal_sizes(rewriter.type_of(node.result()).sizes);
  if (!sizes) return false;
  rewriter.replace_node(position, Op::find("aten::reshape"), {node.arguments.front(), *sizes});
  return true;
}

// Channels in groups, taken by turns: written out as the views that it is.
bool convert_channel_shuffle(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!node.is("aten::channel_shuffle") && !node.is("aten::native_channel_shuffle")) return false;
  const ValueType type = rewriter.type_of(node.argument("self"));
  const auto* groups = node.argument("groups").get<int64_t>();
  if (!type.sized || type.sizes.size() < 3 || !groups || *groups <= 0) return false;
  const auto channels = type.sizes[1].constant();
  if (!channels || *channels % *groups != 0) return false;
  ValueType split = type, turned = type;
  split.sizes[1] = *channels / *groups, split.sizes.insert(split.sizes.begin() + 1, Dimension(*groups));
  turned.sizes = split.sizes;
  std::swap(turned.sizes[1], turned.sizes[2]);
  const auto sizes = literal_sizes(split.sizes), whole = literal_sizes(type.sizes);
  if (!sizes || !whole) return false;
  const ValueId parts = rewriter.insert_before(position, Op::find("aten::reshape"), {node.argument("self"), *sizes},
                                               {split}, node.origin);
  const ValueId order =
      rewriter.insert_before(position, Op::find("aten::transpose.int"), {parts, 1, 2}, {turned}, node.origin);
  rewriter.replace_node(position, Op::find("aten::reshape"), {order, *whole});
  return true;
}

// The gradient of a selected part is that part with zeros before and behind it.
bool convert_select_gradient(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!node.is("aten::select_backward")) return false;
  const ValueType type = rewriter.type_of(node.result()), part = rewriter.type_of(node.argument("grad_output"));
  const auto *dim = node.argument("dim").get<int64_t>(), *index = node.argument("index").get<int64_t>();
  if (!type.sized || !part.sized || part.sizes.size() + 1 != type.sizes.size() || !dim || !index) return false;
  const auto rank = static_cast<int64_t>(type.sizes.size());
  const int64_t at = *dim < 0 ? *dim + rank : *dim;
  const auto size = type.sizes[static_cast<size_t>(at)].constant();
  if (!size || *index < 0 || *index >= *size) return false;
  ValueType wide = part;
  wide.sizes.insert(wide.sizes.begin() + at, Dimension(1));
  const ValueId whole = rewriter.insert_before(position, Op::find("aten::unsqueeze"),
                                               {node.argument("grad_output"), at}, {wide}, node.origin);
  std::vector<int64_t> around(static_cast<size_t>(2 * (rank - at)), 0);
  around[around.size() - 2] = *index, around.back() = *size - 1 - *index;
  rewriter.replace_node(position, Op::find("aten::constant_pad_nd"),
                        {whole, ArgumentList(around.begin(), around.end()), int64_t{0}});
  return true;
}

}  // namespace

int canonicalize(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    if (!rewriter.node(position).op.has_schema()) continue;
    canonicalize_conv(rewriter, position) || convert_synonym(rewriter, position) ||
        convert_to_plain_form(rewriter, position) || convert_batch_norm(rewriter, position) ||
        convert_attention(rewriter, position) || convert_softmax(rewriter, position) ||
        convert_cast(rewriter, position) || convert_permutation(rewriter, position) ||
        convert_reshape(rewriter, position) || convert_channel_shuffle(rewriter, position) ||
        convert_select_gradient(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
