// lissome::linear_group: weights of 4 or 8 bits with a scale for 32 inputs each, by rows that come into such groups
// once, however many layers read them.
#include "lissome/kernel/gemm/linear_group.h"
#include "lissome/lower/candidate/gemm/gemm_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/gemm/linear_group_steps.h"

namespace lissome {
namespace {

// The numbers of the weight, one in a byte.
Array spread_numbers(const at::Tensor& weight) {
  const Array given = share_tensor(weight);
  if (given.dtype == Dtype::i8) return given;
  Array numbers = make_array(Dtype::i8, {given.sizes[0], 2 * given.sizes[1]});
  for (int64_t i = 0; i < given.elements(); ++i) {
    const uint8_t pair = given.data<uint8_t>()[i];
    numbers.data<int8_t>()[2 * i] = static_cast<int8_t>(((pair & 15) ^ 8) - 8);
    numbers.data<int8_t>()[2 * i + 1] = static_cast<int8_t>(((pair >> 4) ^ 8) - 8);
  }
  return numbers;
}

struct PackedGroups {
  PlanValueId weight, scales;
  GroupFields form;
  int64_t outputs = 0;
};

bool has_four_bits(const PlanBuilder& builder, const Node& node) {
  const Argument& weight = node.argument("weight");
  return weight.is_value() && builder.type(weight.value()).dtype == Dtype::u8;
}

PackedGroups pack_groups(PlanBuilder& builder, const Node& node) {
  const Weight& weight = *builder.program().find_weight(node.argument("weight").value());
  const Weight& factors = *builder.program().find_weight(node.argument("scales").value());
  const at::Tensor& scales = factors.tensor;
  PackedGroups made;
  made.form.bits = has_four_bits(builder, node) ? 4 : 8;
  made.outputs = weight.tensor.size(0);
  const int64_t inputs = weight.tensor.size(1) * (made.form.bits == 4 ? 2 : 1), outputs = made.outputs;
  const int bits = static_cast<int>(made.form.bits);
  made.form.scale_inputs = inputs / scales.size(1);
  const std::string name = weight.name + ".packed";
  if (!builder.has_packed(name)) {
    const Array numbers = spread_numbers(weight.tensor);
    Array packed = make_array(Dtype::u8, {packed_group_size(outputs, inputs, bits)});
    pack_group_weight(numbers.data<int8_t>(), outputs, inputs, bits, packed.data<uint8_t>());
    builder.add_packed(name, std::move(packed));
  }
  const std::string scales_name = factors.name + ".packed_scales." + std::to_string(made.form.scale_inputs);
  if (!builder.has_packed(scales_name)) {
    const Array given = share_tensor(scales);
    Array packed = make_array(Dtype::bf16, {packed_group_scales(outputs, inputs, made.form.scale_inputs)});
    pack_group_scales(given.data<uint16_t>(), outputs, inputs, made.form.scale_inputs, packed.data<uint16_t>());
    builder.add_packed(scales_name, std::move(packed));
  }
  made.weight = builder.find_packed(name), made.scales = builder.find_packed(scales_name);
  return made;
}

std::string refuse_groups(const PlanBuilder& builder, const Node& node) {
  const bool four = has_four_bits(builder, node);
  const std::string refusal =
      first_refusal({refuse_weight(builder, node.argument("weight"), four ? Dtype::u8 : Dtype::i8, 2),
                     refuse_weight(builder, node.argument("scales"), Dtype::bf16, 2),
                     refuse_tensor(builder, Argument(node.result()), Dtype::f32)});
  if (!refusal.empty()) return refusal;
  const at::Tensor &weight = *builder.constant(node.argument("weight").value()),
                   &scales = *builder.constant(node.argument("scales").value());
  const int64_t inputs = weight.size(1) * (four ? 2 : 1), groups = scales.size(1);
  const int64_t together = groups > 0 && inputs % groups == 0 ? inputs / groups : 0;
  if (together != 32 && together != 64 && together != 128) return "its scales are not for 32, 64 or 128 inputs";
  return scales.size(0) == weight.size(0) ? "" : "scales are not one row an output";
}

}  // namespace

std::string refuse_linear_group(const PlanBuilder& builder, const Node& node) {
  const std::string refusal =
      first_refusal({refuse_activation(node.argument("act")), refuse_tensor(builder, node.argument("x"), Dtype::f32),
                     refuse_groups(builder, node), refuse_optional(builder, node.argument("bias"), Dtype::f32)});
  if (!refusal.empty()) return refusal;
  const int64_t inputs =
      builder.constant(node.argument("weight").value())->size(1) * (has_four_bits(builder, node) ? 2 : 1);
  const std::vector<Dimension>& sizes = builder.type(node.argument("x").value()).sizes;
  if (sizes.empty() || sizes.back().constant() != inputs) return "x has not as many inputs as the weight";
  return refuse_residual(builder, node, node.argument("residual"));
}

void emit_linear_group(PlanBuilder& builder, const Node& node) {
  const PackedGroups packed = pack_groups(builder, node);
  LinearGroupStep step;
  step.groups = packed.form;
  step.outputs = packed.outputs;
  step.activation = translate_activation(*node.argument("act").get<std::string>());
  const QuantizedGroups rows = builder.quantize_groups(node.argument("x").value(), node);
  step.x = {rows.numbers}, step.x_scales = {rows.scales}, step.x_sums = {rows.sums};
  step.weight = {packed.weight}, step.weight_scales = {packed.scales};
  step.bias = {builder.use(node.argument("bias"))};
  step.residual = {builder.use_dense(node.argument("residual"), node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

std::string refuse_embedding_group(const PlanBuilder& builder, const Node& node) {
  const Argument& indices = node.argument("indices");
  const bool narrow = indices.is_value() && builder.type(indices.value()).dtype == Dtype::i32;
  return first_refusal(
      {refuse_groups(builder, node), refuse_tensor(builder, indices, narrow ? Dtype::i32 : Dtype::i64)});
}

void emit_embedding_group(PlanBuilder& builder, const Node& node) {
  const PackedGroups packed = pack_groups(builder, node);
  GatherGroupsStep step;
  step.rows = packed.outputs;
  step.groups = packed.form;
  step.table = {packed.weight}, step.scales = {packed.scales};
  step.indices = {builder.use_dense(node.argument("indices"), node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

}  // namespace lissome
