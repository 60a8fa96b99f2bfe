// Convolutions in f32 on our own kernels: channels-last in and out; depthwise has a kernel of its own.
#include "lissome/lower/candidate_rows.h"
#include "lissome/lower/geometry.h"
#include "lissome/lower/refusals.h"
#include "lissome/lower/tensors.h"

namespace lissome {
namespace {

const Argument& input_of(const Node& node) { return node.argument(node.is("aten::convolution") ? "input" : "x"); }

bool is_depthwise(const Node& node, const at::Tensor& weight) {
  const int64_t groups = *node.argument("groups").get<int64_t>();
  return groups > 1 && weight.size(1) == 1 && weight.size(0) == groups;
}

int pack_weight(PlanBuilder& builder, const Node& node, const at::Tensor& tensor, bool depthwise) {
  const int64_t groups = *node.argument("groups").get<int64_t>();
  const std::string name = builder.program().find_weight(node.argument("weight").value())->name +
                           (depthwise ? ".depthwise_f32" : ".conv_f32." + std::to_string(groups));
  if (builder.has_packed(name)) return builder.find_packed(name);
  const Array weight = share_tensor(tensor);
  const int64_t outputs = weight.sizes[0], inputs = weight.sizes[1];
  const int64_t taps = weight.elements() / (outputs * inputs);
  if (depthwise) {
    Array packed = make_array(Dtype::f32, {weight.elements()});
    pack_depthwise_f32(weight.data<float>(), outputs, taps, packed.data<float>());
    return builder.add_packed(name, std::move(packed));
  }
  Array packed = make_array(Dtype::f32, {packed_conv_f32_size(outputs, inputs * groups, groups, taps)});
  pack_conv_f32(weight.data<float>(), outputs, inputs * groups, groups, taps, packed.data<float>());
  return builder.add_packed(name, std::move(packed));
}

}  // namespace

std::string refuse_conv_f32(const PlanBuilder& builder, const Node& node) {
  const bool fused = !node.is("aten::convolution");
  const Argument& weight = node.argument("weight");
  const at::Tensor* tensor = weight.is_value() ? builder.constant(weight.value()) : nullptr;
  if (!tensor) return "the weight is computed";
  if (tensor->scalar_type() != at::kFloat) return "the weight is not f32";
  if (tensor->dim() != 3 && tensor->dim() != 4) return "it has neither one nor two spatial dimensions";
  if (node.argument("transposed") != Argument(false)) return "it is transposed";
  if (tensor->numel() == 0) return "the weight is empty";
  const std::string refusal =
      first_refusal({refuse_geometry(node), refuse_tensor(builder, input_of(node), Dtype::f32),
                     refuse_optional(builder, node.argument("bias"), Dtype::f32),
                     refuse_tensor(builder, Argument(node.result()), Dtype::f32),
                     fused ? refuse_activation(node.argument("act")) : std::string(),
                     fused ? refuse_residual(builder, node, node.argument("residual")) : std::string()});
  if (!refusal.empty()) return refusal;
  if (builder.type(input_of(node).value()).sizes.size() != static_cast<size_t>(tensor->dim())) return "x has no batch";
  return {};
}

void emit_conv_f32(PlanBuilder& builder, const Node& node) {
  const bool fused = !node.is("aten::convolution");
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  const bool depthwise = is_depthwise(node, weight);
  const int packed = pack_weight(builder, node, weight, depthwise);
  const int64_t channels = weight.size(1) * *node.argument("groups").get<int64_t>();
  const std::string zeros = "zeros.f32." + std::to_string(channels);
  if (!depthwise && !builder.has_packed(zeros)) builder.add_packed(zeros, make_array(Dtype::f32, {channels}));
  PlanStep step;
  step.kernel = depthwise ? "depthwise_f32" : "conv_f32";
  set_geometry(step, node, weight);
  if (fused) set_activation(step, *node.argument("act").get<std::string>());
  step.operands = {builder.use_dense(input_of(node), node, Format::channels_last), packed,
                   builder.use(node.argument("bias")),
                   fused ? builder.use_dense(node.argument("residual"), node, Format::channels_last) : -1};
  if (!depthwise) step.operands.push_back(builder.find_packed(zeros));
  step.results = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(std::move(step), node);
}

}  // namespace lissome
