// What libtorch reaches: oneDNN's linear and convolution with weights reordered once and a fused epilogue, in f32, bf16
// and int8; and each of its two forms of attention. Each row keeps rewritten nodes for the reference library, which
// packs the weights when a session opens.
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>

#include "lissome/lower/candidate/candidate_libtorch.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/refusals.h"

namespace lissome {
namespace {

// How oneDNN's pointwise ops spell an activation.
struct Spelling {
  std::string_view activation, attribute;
  ArgumentList scalars;
  std::string_view algorithm;
};

const Spelling* find_spelling(std::string_view activation) {
  static const std::array<Spelling, 7> kSpellings = {{{"none", "none", {}, ""},
                                                      {"relu", "relu", {}, ""},
                                                      {"gelu", "gelu", {}, "none"},
                                                      {"gelu_tanh", "gelu", {}, "tanh"},
                                                      {"silu", "swish", {}, ""},
                                                      {"sigmoid", "sigmoid", {}, ""},
                                                      {"tanh", "tanh", {}, ""}}};
  const auto found = std::find_if(kSpellings.begin(), kSpellings.end(),
                                  [&](const Spelling& row) { return row.activation == activation; });
  return found == kSpellings.end() ? nullptr : &*found;
}

bool is_fused(const Node& node) { return node.op.name().starts_with("lissome::"); }

std::string activation_of(const Node& node) {
  return is_fused(node) ? *node.argument("act").get<std::string>() : "none";
}
Argument residual_of(const Node& node) { return is_fused(node) ? node.argument("residual") : Argument(); }

// Adds a node that the reference runs; returns its result.
ValueId keep(PlanBuilder& builder, const Node& from, std::string_view op, ArgumentList arguments,
             const ValueType& type) {
  Node node;
  node.op = Op::find(op);
  node.arguments = complete_arguments(node.op, std::move(arguments));
  node.results = {builder.program().add_value(type)};
  node.origin = from.origin;
  const ValueId result = node.results.front();
  builder.keep_node(std::move(node));
  return result;
}

// The last of the nodes that stand for `from`: gives its result.
void keep_last(PlanBuilder& builder, const Node& from, std::string_view op, ArgumentList arguments) {
  Node node = from;
  node.op = Op::find(op);
  node.arguments = complete_arguments(node.op, std::move(arguments));
  node.bodies.clear();
  builder.keep_node(std::move(node));
}

std::string_view activation_op(std::string_view activation) {
  if (activation == "gelu_tanh") return "aten::gelu";
  static constexpr std::array kOps = {"aten::relu", "aten::relu6",     "aten::leaky_relu",
                                      "aten::gelu", "aten::silu",      "aten::sigmoid",
                                      "aten::tanh", "aten::hardswish", "aten::hardsigmoid"};
  for (const char* op : kOps) {
    if (std::string_view(op).substr(6) == activation) return op;
  }
  return {};
}

// act(value + residual) as plain nodes, then perhaps quantized: what no fused form takes.
void keep_epilogue(PlanBuilder& builder, const Node& from, ValueId value, const Argument& residual,
                   const std::string& activation, bool gives_u8) {
  ValueType type = builder.type(value);
  const bool acts = activation != "none";
  const auto last = [&](std::string_view op, ArgumentList arguments) {
    keep_last(builder, from, op, std::move(arguments));
  };
  if (!residual.is_none()) {
    if (!acts && !gives_u8) return last("aten::add.Tensor", {value, residual});
    value = keep(builder, from, "aten::add.Tensor", {value, residual}, type);
  }
  if (acts) {
    ArgumentList arguments = {value};
    if (activation == "gelu_tanh") arguments.emplace_back("tanh");
    if (!gives_u8) return last(activation_op(activation), std::move(arguments));
    value = keep(builder, from, activation_op(activation), std::move(arguments), type);
  }
  if (gives_u8) last("lissome::quantize", {value, from.argument("out_scale"), from.argument("out_zero")});
}

std::string refuse_floats(const PlanBuilder& builder, const Node& node) {
  const Dtype dtype = builder.type(node.result()).dtype;
  if (dtype != Dtype::f32 && dtype != Dtype::bf16) return "the result is neither f32 nor bf16";
  if (dtype == Dtype::bf16 && !has(Feature::avx512_bf16)) return "this processor has no bf16 products";
  const at::Tensor* weight = builder.constant(node.argument("weight").value());
  if (weight == nullptr) return "the weight is not constant";
  if (weight->scalar_type() != scalar_type_of(dtype)) return "weight and result differ in dtype";
  if (!node.arguments.front().is_value() || builder.type(node.arguments.front().value()).dtype != dtype)
    return "x and result differ in dtype";
  return {};
}

ArgumentList pointwise_arguments(const Spelling& spelling) {
  return {std::string(spelling.attribute), spelling.scalars,
          spelling.algorithm.empty() ? Argument("") : Argument(std::string(spelling.algorithm))};
}

void append(ArgumentList& arguments, ArgumentList more) {
  for (Argument& argument : more) arguments.push_back(std::move(argument));
}

}  // namespace

// ---- f32 and bf16
// ----------------------------------------------------------------------------------------------------

std::string refuse_mkldnn_linear(const PlanBuilder& builder, const Node& node) {
  if (const std::string refusal = refuse_floats(builder, node); !refusal.empty()) return refusal;
  const at::Tensor* weight = builder.constant(node.argument("weight").value());
  if (weight->dim() != 2) return "the weight is no matrix";
  if (builder.type(node.arguments.front().value()).sizes.size() < 2) return "x is a vector";
  return {};
}

void emit_mkldnn_linear(PlanBuilder& builder, const Node& node) {
  ValueType packed;
  packed.kind = ValueKind::any;
  const ValueId w = keep(builder, node, "mkldnn::_reorder_linear_weight", {node.argument("weight")}, packed);
  const std::string activation = activation_of(node);
  const Argument residual = residual_of(node);
  const Spelling* spelling = find_spelling(activation);
  const ValueType& type = builder.type(node.result());
  const Spelling* none = find_spelling("none");
  if (residual.is_none() && spelling != nullptr) {
    ArgumentList arguments = {node.arguments.front(), w, node.argument("bias")};
    append(arguments, pointwise_arguments(*spelling));
    return keep_last(builder, node, "mkldnn::_linear_pointwise", std::move(arguments));
  }
  if (!residual.is_none() && activation == "none") {
    return keep_last(builder, node, "mkldnn::_linear_pointwise.binary",
                     {node.arguments.front(), residual, w, node.argument("bias"), "add"});
  }
  ArgumentList arguments = {node.arguments.front(), w, node.argument("bias")};
  append(arguments, pointwise_arguments(*none));
  const ValueId product = keep(builder, node, "mkldnn::_linear_pointwise", std::move(arguments), type);
  keep_epilogue(builder, node, product, residual, activation, false);
}

std::string refuse_mkldnn_conv(const PlanBuilder& builder, const Node& node) {
  if (const std::string refusal = refuse_floats(builder, node); !refusal.empty()) return refusal;
  if (node.argument("transposed") != Argument(false)) return "it is transposed";
  const at::Tensor* weight = builder.constant(node.argument("weight").value());
  if (weight->dim() != 4) return "it is not two-dimensional";
  return refuse_uneven_padding(node);
}

void emit_mkldnn_conv(PlanBuilder& builder, const Node& node) {
  ValueType packed;
  packed.kind = ValueKind::any;
  const ValueId x = keep(builder, node, "aten::contiguous", {node.arguments.front(), MemoryFormat::channels_last},
                         builder.type(node.arguments.front().value()));
  const Argument &padding = node.argument("padding"), &stride = node.argument("stride"),
                 &dilation = node.argument("dilation"), &groups = node.argument("groups");
  const ValueId w = keep(builder, node, "mkldnn::_reorder_convolution_weight",
                         {node.argument("weight"), padding, stride, dilation, groups}, packed);
  const std::string activation = activation_of(node);
  const Argument residual = residual_of(node);
  const Spelling* spelling = find_spelling(activation);
  const ArgumentList geometry = {padding, stride, dilation, groups};
  if (residual.is_none() && spelling != nullptr) {
    ArgumentList arguments = {x, w, node.argument("bias")};
    append(arguments, geometry);
    append(arguments, pointwise_arguments(*spelling));
    return keep_last(builder, node, "mkldnn::_convolution_pointwise", std::move(arguments));
  }
  if (!residual.is_none() && (activation == "none" || activation == "relu")) {
    const ValueId other =
        keep(builder, node, "aten::contiguous", {residual, MemoryFormat::channels_last}, builder.type(node.result()));
    ArgumentList arguments = {x, other, w, node.argument("bias")};
    append(arguments, geometry);
    append(arguments, {"add", 1.0, activation == "relu" ? Argument("relu") : Argument(), ArgumentList{}, Argument()});
    return keep_last(builder, node, "mkldnn::_convolution_pointwise.binary", std::move(arguments));
  }
  ArgumentList arguments = {x, w, node.argument("bias")};
  append(arguments, geometry);
  append(arguments, pointwise_arguments(*find_spelling("none")));
  const ValueId product =
      keep(builder, node, "mkldnn::_convolution_pointwise", std::move(arguments), builder.type(node.result()));
  keep_epilogue(builder, node, product, residual, activation, false);
}

// ---- attention
// ----------------------------------------------------------------------------------------------------

std::string refuse_math_attention(const PlanBuilder& builder, const Node& node) {
  const Argument &dropout = node.argument("dropout_p"), &mask = node.argument("attn_mask");
  if (!dropout.get<double>() || *dropout.get<double>() != 0) return "it drops out";
  const Dtype dtype = builder.type(node.result()).dtype;
  if (!is_floating(dtype)) return "the result is no floating-point number";
  for (const char* name : {"query", "key", "value"}) {
    const Argument& operand = node.argument(name);
    if (!operand.is_value() || builder.type(operand.value()).sizes.size() != 4)
      return "q, k and v do not have 4 dimensions";
    if (builder.type(operand.value()).dtype != dtype) return "q, k and v differ in dtype";
  }
  if (mask.is_none()) return {};
  // These ops add the mask; true and false are made numbers by the op around them.
  if (builder.type(mask.value()).dtype != dtype)
    return "the mask is " + std::string(dtype_name(builder.type(mask.value()).dtype));
  return node.argument("is_causal") == Argument(false) ? "" : "it is masked and causal";
}

std::string refuse_flash_attention(const PlanBuilder& builder, const Node& node) {
  if (std::string refused = refuse_math_attention(builder, node); !refused.empty()) return refused;
  const auto& q = builder.type(node.argument("query").value()).sizes;
  const auto& k = builder.type(node.argument("key").value()).sizes;
  const auto& v = builder.type(node.argument("value").value()).sizes;
  if (!(q[3] == v[3])) return "heads of q and v differ in size";
  if (!(q[0] == k[0] && q[0] == v[0])) return "batches are broadcast";
  if (!(q[1] == k[1] && q[1] == v[1])) return "heads are grouped";
  const Argument& mask = node.argument("attn_mask");
  const size_t rank = mask.is_none() ? 2 : builder.type(mask.value()).sizes.size();
  return rank == 2 || rank == 4 ? "" : "the mask has an odd rank";
}

namespace {

void keep_attention(PlanBuilder& builder, const Node& from, std::string_view op,
                    std::initializer_list<std::string_view> arguments) {
  Node node = from;
  node.op = Op::find(op);
  node.arguments = complete_arguments(node.op, {from.argument("query"), from.argument("key"), from.argument("value")});
  for (const std::string_view name : arguments) node.argument(name) = from.argument(name);
  node.results.push_back(ValueId::none);
  builder.keep_node(std::move(node));
}

}  // namespace

void emit_flash_attention(PlanBuilder& builder, const Node& node) {
  keep_attention(builder, node, "aten::_scaled_dot_product_flash_attention_for_cpu",
                 {"attn_mask", "is_causal", "scale"});
}

void emit_math_attention(PlanBuilder& builder, const Node& node) {
  keep_attention(builder, node, "aten::_scaled_dot_product_attention_math",
                 {"attn_mask", "is_causal", "scale", "enable_gqa"});
}

// ---- int8
// --------------------------------------------------------------------------------------------------------------

namespace {

bool gives_u8(const Node& node) { return node.op.name().ends_with("_u8"); }

// oneDNN's int8 ops saturate pairs of products in 16 bits where there is no VNNI: wrong numbers, not slow ones.
std::string refuse_int8(const PlanBuilder& builder, const Node& node, int64_t rank) {
  if (!has(Feature::avx512_vnni)) return "this processor has no VNNI: oneDNN would saturate";
  const at::Tensor* weight = builder.constant(node.argument("weight").value());
  if (weight == nullptr || builder.constant(node.argument("weight_scales").value()) == nullptr)
    return "the weight is not constant";
  if (weight->dim() != rank) return "the weight has another rank";
  return {};
}

ValueId add_zero_points(PlanBuilder& builder, const Node& node) {
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  const std::string name = "zeros." + std::to_string(weight.size(0));
  if (const Weight* known = builder.program().find_weight(name)) return known->value;
  return builder.program().add_weight(name, at::zeros({weight.size(0)}, at::kLong), WeightRole::constant);
}

// What both int8 ops say at their end: output scale, zero point and dtype, then the activation.
ArgumentList finish_arguments(const Node& node, bool requantizes, const Spelling& spelling) {
  ArgumentList arguments;
  if (requantizes) {
    arguments = {node.argument("out_scale"), node.argument("out_zero"), Dtype::u8};
  } else {
    arguments = {1.0, 0, Dtype::f32};
  }
  append(arguments, pointwise_arguments(spelling));
  return arguments;
}

// The residual is added before the activation, in f32: then the rest of the epilogue is written out.
struct Int8Epilogue {
  const Spelling* fused;
  bool written_out;
};
Int8Epilogue choose_epilogue(const Node& node) {
  const Spelling* spelling = find_spelling(*node.argument("act").get<std::string>());
  const bool written_out = spelling == nullptr || !node.argument("residual").is_none();
  return {written_out ? find_spelling("none") : spelling, written_out};
}

void keep_int8(PlanBuilder& builder, const Node& node, std::string_view op, ArgumentList arguments) {
  const Int8Epilogue epilogue = choose_epilogue(node);
  append(arguments, finish_arguments(node, gives_u8(node) && !epilogue.written_out, *epilogue.fused));
  if (!epilogue.written_out) return keep_last(builder, node, op, std::move(arguments));
  ValueType type = builder.type(node.result());
  type.dtype = Dtype::f32;
  const ValueId product = keep(builder, node, op, std::move(arguments), type);
  keep_epilogue(builder, node, product, node.argument("residual"), *node.argument("act").get<std::string>(),
                gives_u8(node));
}

}  // namespace

std::string refuse_onednn_linear_int8(const PlanBuilder& builder, const Node& node) {
  return refuse_int8(builder, node, 2);
}

void emit_onednn_linear_int8(PlanBuilder& builder, const Node& node) {
  ValueType packed;
  packed.kind = ValueKind::any;
  const ValueId w = keep(builder, node, "onednn::qlinear_prepack", {node.argument("weight"), Argument()}, packed);
  keep_int8(builder, node, "onednn::qlinear_pointwise",
            {node.argument("x"), node.argument("x_scale"), node.argument("x_zero"), w, node.argument("weight_scales"),
             add_zero_points(builder, node), node.argument("bias")});
}

std::string refuse_onednn_conv_int8(const PlanBuilder& builder, const Node& node) {
  const Argument& residual = node.argument("residual");
  if (residual.is_value() && builder.type(residual.value()).dtype == Dtype::u8) return "the residual is u8";
  if (const std::string refusal = refuse_uneven_padding(node); !refusal.empty()) return refusal;
  return refuse_int8(builder, node, 4);
}

void emit_onednn_conv_int8(PlanBuilder& builder, const Node& node) {
  ValueType packed;
  packed.kind = ValueKind::any;
  const Argument &padding = node.argument("padding"), &stride = node.argument("stride"),
                 &dilation = node.argument("dilation"), &groups = node.argument("groups");
  const ValueId x = keep(builder, node, "aten::contiguous", {node.argument("x"), MemoryFormat::channels_last},
                         builder.type(node.argument("x").value()));
  const ValueId w = keep(builder, node, "onednn::qconv_prepack",
                         {node.argument("weight"), node.argument("weight_scales"), node.argument("x_scale"),
                          node.argument("x_zero"), stride, padding, dilation, groups, Argument()},
                         packed);
  keep_int8(builder, node, "onednn::qconv_pointwise",
            {x, node.argument("x_scale"), node.argument("x_zero"), w, node.argument("weight_scales"),
             add_zero_points(builder, node), node.argument("bias"), stride, padding, dilation, groups});
}

}  // namespace lissome
