// One spelling for each meaning, so that every later pattern is written once. Exports come in two dialects: the
// user-level one (conv2d, softmax.int, layer_norm) and the decomposed one (convolution, _softmax, native_layer_norm).
#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

struct ConvSpelling {
  std::string_view name;
  int dimensions;
  bool transposed;
};
constexpr ConvSpelling kConvs[] = {
    {"aten::conv1d", 1, false},          {"aten::conv2d", 2, false},
    {"aten::conv3d", 3, false},          {"aten::conv_transpose1d", 1, true},
    {"aten::conv_transpose2d.input", 2, true}, {"aten::conv_transpose3d.input", 3, true},
};

// [2] stands for [2, 2] in a schema such as `int[2] stride`.
Argument widen(const Argument& list, int dimensions) {
  if (!list.is_list() || list.list().size() != 1) return list;
  return ArgumentList(static_cast<size_t>(dimensions), list.list().front());
}

bool convert_conv(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  for (const ConvSpelling& conv : kConvs) {
    if (!node.is(conv.name)) continue;
    // An input without batch dimension has no counterpart among convolution's.
    const ValueType& type = rewriter.program().value(node.argument("input").value()).type;
    if (!type.sized || static_cast<int>(type.sizes.size()) != conv.dimensions + 2) return false;
    const Argument zeros = ArgumentList(static_cast<size_t>(conv.dimensions), Argument(0));
    rewriter.replace_node(position, Op::find("aten::convolution"),
                          {node.argument("input"), node.argument("weight"), node.argument("bias"),
                           widen(node.argument("stride"), conv.dimensions),
                           widen(node.argument("padding"), conv.dimensions),
                           widen(node.argument("dilation"), conv.dimensions), conv.transposed,
                           conv.transposed ? widen(node.argument("output_padding"), conv.dimensions) : zeros,
                           node.argument("groups")});
    return true;
  }
  return false;
}

// Ops with further results that nobody reads have a plain form.
bool has_only_first_result(Rewriter& rewriter, const Node& node) {
  for (size_t i = 1; i < node.results.size(); ++i) {
    if (rewriter.use_count(node.results[i]) > 0) return false;
  }
  return true;
}

bool replace_first_result(Rewriter& rewriter, int position, std::string_view op, ArgumentList arguments) {
  const Node& node = rewriter.node(position);
  const ValueId output = node.results.at(0);
  const ValueType type = rewriter.program().value(output).type;
  const std::shared_ptr<const Origin> origin = node.origin;
  const ValueId fresh = rewriter.insert_before(position, Op::find(op), std::move(arguments), {type}, origin);
  rewriter.replace_value(output, fresh);
  return true;
}

bool convert_norm(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (node.is("aten::native_layer_norm") && has_only_first_result(rewriter, node)) {
    return replace_first_result(rewriter, position, "aten::layer_norm",
                                {node.argument("input"), node.argument("normalized_shape"), node.argument("weight"),
                                 node.argument("bias"), node.argument("eps"), false});
  }
  if (node.is("aten::_native_batch_norm_legit_no_training") && has_only_first_result(rewriter, node)) {
    return replace_first_result(rewriter, position, "aten::batch_norm",
                                {node.argument("input"), node.argument("weight"), node.argument("bias"),
                                 node.argument("running_mean"), node.argument("running_var"), false,
                                 node.argument("momentum"), node.argument("eps"), false});
  }
  return false;
}

bool convert_attention(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::_scaled_dot_product_flash_attention_for_cpu") || !has_only_first_result(rewriter, node)) {
    return false;
  }
  const auto* dropout = node.argument("dropout_p").get<double>();
  if (dropout == nullptr || *dropout != 0) return false;
  return replace_first_result(rewriter, position, "aten::scaled_dot_product_attention",
                              {node.argument("query"), node.argument("key"), node.argument("value"),
                               node.argument("attn_mask"), 0.0, node.argument("is_causal"), node.argument("scale"),
                               false});
}

bool convert_simple(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (node.is("aten::_softmax")) {
    if (node.argument("half_to_float") != Argument(false)) return false;
    rewriter.replace_node(position, Op::find("aten::softmax.int"), {node.argument("self"), node.argument("dim")});
    return true;
  }
  if (node.is("aten::view") || node.is("aten::_unsafe_view")) {
    rewriter.replace_node(position, Op::find("aten::reshape"), {node.argument("self"), node.argument("size")});
    return true;
  }
  if (node.is("aten::t")) {
    const ValueType& type = rewriter.program().value(node.argument("self").value()).type;
    if (!type.sized || type.sizes.size() != 2) return false;
    rewriter.replace_node(position, Op::find("aten::permute"), {node.argument("self"), ArgumentList{1, 0}});
    return true;
  }
  return false;
}

}  // namespace

int canonicalize(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    convert_conv(rewriter, position) || convert_norm(rewriter, position) || convert_attention(rewriter, position) ||
        convert_simple(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
