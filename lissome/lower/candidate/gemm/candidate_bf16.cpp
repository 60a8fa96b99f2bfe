// Nodes that give bf16 on our own kernels, and casts between bf16 and f32. What is not constant or not bf16 where the
// kernels want it so goes to the candidates behind.
#include <cfloat>
#include <type_traits>
#include <utility>

#include "lissome/lower/candidate/attention/attention_candidates.h"
#include "lissome/lower/candidate/conv/conv_candidates.h"
#include "lissome/lower/candidate/conv/conv_constants.h"
#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/gemm/gemm_candidates.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/norm/norm_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/conv/conv_bf16_steps.h"
#include "lissome/runtime/step/depthwise/depthwise_steps.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"
#include "lissome/runtime/step/gemm/linear_steps.h"
#include "lissome/runtime/step/norm/layer_norm_steps.h"
#include "lissome/runtime/step/norm/softmax_steps.h"

namespace lissome {
namespace {

std::string refuse_same(const PlanBuilder& builder, const Node& node) {
  return first_refusal({refuse_tensor(builder, node.arguments.front(), Dtype::bf16),
                        refuse_tensor(builder, Argument(node.result()), Dtype::bf16)});
}

bool is_fused(const Node& node) { return !node.is("aten::linear"); }

const uint16_t* read_bits(const at::Tensor& tensor) { return static_cast<const uint16_t*>(tensor.const_data_ptr()); }

}  // namespace

std::string refuse_linear_bf16(const PlanBuilder& builder, const Node& node) {
  if (is_fused(node)) {
    const std::string refusal = refuse_activation(node.argument("act"));
    if (!refusal.empty()) return refusal;
  }
  const Argument& bias = node.argument("bias");
  const std::string refusal =
      first_refusal({refuse_same(builder, node), refuse_weight(builder, node.argument("weight"), Dtype::bf16, 2),
                     bias.is_none() ? std::string() : refuse_weight(builder, bias, Dtype::bf16, 1)});
  if (!refusal.empty()) return refusal;
  if (builder.type(node.arguments.front().value()).sizes.empty()) return "x has no dimensions";
  if (!is_fused(node) || node.argument("residual").is_none()) return {};
  const Argument& residual = node.argument("residual");
  const std::string refused = refuse_tensor(builder, residual, Dtype::bf16);
  if (!refused.empty()) return refused;
  return builder.type(residual.value()).sizes != builder.type(node.result()).sizes ? "the residual is broadcast" : "";
}

void emit_linear_bf16(PlanBuilder& builder, const Node& node) {
  const ValueId id = node.argument("weight").value();
  const at::Tensor& weight = *builder.constant(id);
  const int64_t outputs = weight.size(0), inputs = weight.size(1);
  const std::string name = builder.program().find_weight(id)->name + ".linear_bf16";
  if (!builder.has_packed(name)) {
    Array packed = make_array(Dtype::bf16, {packed_linear_bf16_size(outputs, inputs)});
    pack_linear_bf16(read_bits(weight), outputs, inputs, weight.stride(0), weight.stride(1), packed.data<uint16_t>());
    builder.note_packed_rows(weight, builder.add_packed(name, std::move(packed)));
  }
  LinearBf16Step step;
  step.outputs = outputs;
  step.x = {builder.use_dense(node.arguments.front(), node)};
  step.weight = {builder.find_packed(name)};
  step.bias = {builder.use_f32(node.argument("bias"))};
  if (is_fused(node)) {
    step.activation = translate_activation(*node.argument("act").get<std::string>());
    step.residual = {builder.use_dense(node.argument("residual"), node)};
  }
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

namespace {

PlanValueId pack_conv(PlanBuilder& builder, const Node& node, const at::Tensor& weight, bool transposed) {
  const ConvBf16Call call = describe_conv_bf16(node, weight.sizes().vec(), transposed);
  std::string name = builder.program().find_weight(node.argument("weight").value())->name + ".conv_bf16." +
                     std::to_string(call.groups);
  if (transposed) name += name_phases(call.window);
  if (builder.has_packed(name)) return builder.find_packed(name);
  Array packed = make_array(Dtype::bf16, {packed_conv_bf16_size(call)});
  const at::Tensor dense = weight.contiguous();
  pack_conv_bf16(call, read_bits(dense), packed.data<uint16_t>());
  return builder.add_packed(name, std::move(packed));
}

}  // namespace

std::optional<ValueId> find_image_planes(const PlanBuilder& builder, const Node& node, ValueId x, int64_t inputs) {
  if (inputs >= kBf16Step || node.argument("groups") != Argument(int64_t{1})) return {};
  if (builder.format(x) != Format::row_major || builder.is_strided_view(x)) return {};
  const Node* cast = find_maker(builder, x);
  if (!cast || !cast->is("aten::to.dtype") || !refuse_cast_bf16(builder, *cast).empty()) return x;
  const ValueId source = cast->arguments.front().value();
  return builder.format(source) == Format::row_major && !builder.is_strided_view(source) ? source : x;
}

std::string refuse_conv_bf16(const PlanBuilder& builder, const Node& node) {
  const bool fused = !node.is("aten::convolution");
  const Argument &weight = node.argument("weight"), &bias = node.argument("bias");
  const at::Tensor* tensor = weight.is_value() ? builder.constant(weight.value()) : nullptr;
  if (!tensor) return "the weight is computed";
  if (tensor->scalar_type() != at::kBFloat16) return "the weight is not bf16";
  if (tensor->dim() != 3 && tensor->dim() != 4) return "it has neither one nor two spatial dimensions";
  if (tensor->numel() == 0) return "the weight is empty";
  const bool* transposed = node.argument("transposed").get<bool>();
  if (!transposed) return "whether it is transposed is computed";
  const std::string refusal =
      first_refusal({refuse_geometry(node), refuse_tensor(builder, conv_input(node), Dtype::bf16),
                     bias.is_none() ? std::string() : refuse_weight(builder, bias, Dtype::bf16, 1),
                     refuse_tensor(builder, Argument(node.result()), Dtype::bf16),
                     fused ? refuse_activation(node.argument("act")) : std::string()});
  if (!refusal.empty()) return refusal;
  if (builder.type(conv_input(node).value()).sizes.size() != static_cast<size_t>(tensor->dim()))
    return "x has no batch";
  if (fused && !node.argument("residual").is_none()) {
    const Argument& residual = node.argument("residual");
    const std::string refused = refuse_tensor(builder, residual, Dtype::bf16);
    if (!refused.empty()) return refused;
    if (builder.type(residual.value()).sizes != builder.type(node.result()).sizes) return "the residual is broadcast";
  }
  return *transposed ? refuse_scattered(node) : std::string();
}

namespace {

// Adds the step, which has its own attributes. `planes`: x in row order, where it is read so.
template <typename Step>
void emit_conv_step(PlanBuilder& builder, const Node& node, Step step, std::optional<ValueId> planes = {}) {
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  step.window = read_window_fields(node, weight);
  step.x = {planes ? builder.use_dense(*planes, node)
                   : builder.use_dense(conv_input(node), node, Format::channels_last)};
  if constexpr (std::is_same_v<Step, ConvBf16Step>) {
    step.weight = {pack_conv(builder, node, weight, step.transposed)};
  } else if constexpr (std::is_same_v<Step, GroupedBf16Step>) {
    step.weight = {pack_group_pairs(builder, node)};
  } else {
    step.weight = {pack_taps(builder, node)};
  }
  step.bias = {builder.use_f32(node.argument("bias"))};
  if (!node.is("aten::convolution")) {
    step.activation = translate_activation(*node.argument("act").get<std::string>());
    step.residual = {builder.use_dense(node.argument("residual"), node, Format::channels_last)};
  }
  step.y = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

}  // namespace

void emit_conv_bf16(PlanBuilder& builder, const Node& node) {
  const bool transposed = *node.argument("transposed").get<bool>();
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  if (is_depthwise(node, weight)) {
    if (transposed) return emit_conv_step(builder, node, DepthwiseTransposedBf16Step());
    return emit_conv_step(builder, node, DepthwiseBf16Step());
  }
  if (!transposed && has_small_groups(node, weight)) return emit_conv_step(builder, node, GroupedBf16Step());
  std::optional<ValueId> planes;
  if (!transposed) planes = find_image_planes(builder, node, conv_input(node).value(), weight.size(1));
  ConvBf16Step step;
  step.transposed = transposed, step.planes = planes.has_value();
  emit_conv_step(builder, node, step, planes);
}

std::string refuse_layer_norm_bf16(const PlanBuilder& builder, const Node& node) {
  const bool root_mean_square = node.is("aten::rms_norm");
  const Argument& epsilon = node.argument("eps");
  const std::string refusal =
      first_refusal({refuse_same(builder, node), refuse_optional(builder, node.argument("weight"), Dtype::bf16),
                     root_mean_square ? "" : refuse_optional(builder, node.argument("bias"), Dtype::bf16),
                     root_mean_square && epsilon.is_none() ? "" : refuse_number(epsilon, "eps")});
  if (!refusal.empty()) return refusal;
  const auto shape = read_integers(node.argument("normalized_shape"));
  if (!shape) return "the width is computed";
  return count_elements(*shape) > 0 ? "" : "the width is zero";
}

void emit_layer_norm_bf16(PlanBuilder& builder, const Node& node) {
  LayerNormBf16Step step;
  step.width = count_elements(*read_integers(node.argument("normalized_shape")));
  const Argument& epsilon = node.argument("eps");
  // Where none is given, rms_norm adds the distance of one to the next number of the dtype that it computes in.
  step.epsilon = epsilon.is_none() ? FLT_EPSILON : read_number(epsilon);
  step.root_mean_square = node.is("aten::rms_norm");
  step.x = {builder.use_dense(node.arguments.front(), node)};
  step.weight = {builder.use_dense(node.argument("weight"), node)};
  if (!step.root_mean_square) step.bias = {builder.use_dense(node.argument("bias"), node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

std::string refuse_softmax_bf16(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_same(builder, node);
  if (!refusal.empty()) return refusal;
  const auto* dim = node.argument("dim").get<int64_t>();
  const auto rank = static_cast<int64_t>(builder.type(node.arguments.front().value()).sizes.size());
  if (!dim || rank == 0 || (*dim != -1 && *dim != rank - 1)) return "it is not over the last dimension";
  return {};
}

void emit_softmax_bf16(PlanBuilder& builder, const Node& node) {
  SoftmaxBf16Step step;
  step.x = {builder.use_dense(node.arguments.front(), node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

std::string refuse_attention_bf16(const PlanBuilder& builder, const Node& node) {
  const Argument& mask = node.argument("attn_mask");
  const std::string refusal = first_refusal({refuse_tensor(builder, Argument(node.result()), Dtype::bf16),
                                             refuse_tensor(builder, node.argument("query"), Dtype::bf16),
                                             refuse_tensor(builder, node.argument("key"), Dtype::bf16),
                                             refuse_tensor(builder, node.argument("value"), Dtype::bf16),
                                             refuse_attention_form(builder, node)});
  if (!refusal.empty() || mask.is_none()) return refusal;
  const Dtype dtype = builder.type(mask.value()).dtype;
  if (dtype != Dtype::bf16 && dtype != Dtype::boolean) return "the mask is neither bf16 nor bool";
  return refuse_tensor(builder, mask, dtype);
}

std::string refuse_cast_bf16(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.arguments.front();
  if (!x.is_value() || node.results.size() != 1) return "the operand is no tensor";
  if (!node.argument("memory_format").is_none()) return "it asks for a memory format";
  const Dtype from = builder.type(x.value()).dtype, to = builder.type(node.result()).dtype;
  const bool converts = (from == Dtype::f32 && to == Dtype::bf16) || (from == Dtype::bf16 && to == Dtype::f32);
  if (!converts) return "it does not convert between bf16 and f32";
  if (builder.type(node.result()).sizes.size() > 5) return "more than 5 dimensions";
  return first_refusal({refuse_tensor(builder, x, from), refuse_tensor(builder, Argument(node.result()), to)});
}

void emit_cast_bf16(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.arguments.front().value();
  const PlanValueId from = builder.use(x);
  builder.add_step(make_cast_step(from, builder.make(node.result(), Storage::arena, builder.format(x))), node);
}

}  // namespace lissome
