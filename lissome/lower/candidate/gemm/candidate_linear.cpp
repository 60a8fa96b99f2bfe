// aten::linear and lissome::linear_act: in f32 with a weight that stays the same, packed once; in f32 or bf16 with one
// that is computed, as in training.
#include "lissome/lower/candidate/gemm/gemm_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/gemm/linear_steps.h"
#include "lissome/runtime/step/gemm/matmul_steps.h"

namespace lissome {
namespace {

struct LinearArguments {
  const Argument &x, &weight, &bias;
  Argument residual;
  std::string activation = "none";
};

LinearArguments read_linear(const Node& node) {
  LinearArguments linear{
      node.argument(node.op.is("aten::linear") ? "input" : "x"), node.argument("weight"), node.argument("bias"), {}};
  if (!node.is("aten::linear")) {
    linear.residual = node.argument("residual");
    linear.activation = *node.argument("act").get<std::string>();
  }
  return linear;
}

// All but the weight.
std::string refuse_form(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  if (!node.is("aten::linear")) {
    const std::string refusal = refuse_activation(node.argument("act"));
    if (!refusal.empty()) return refusal;
  }
  const LinearArguments linear = read_linear(node);
  const std::string refusal =
      first_refusal({refuse_tensor(builder, linear.x, dtype), refuse_optional(builder, linear.bias, dtype),
                     refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.type(linear.x.value()).sizes.empty()) return "x has no dimensions";
  if (!linear.bias.is_none() && builder.type(linear.bias.value()).sizes.size() != 1) return "the bias is no vector";
  return refuse_residual(builder, node, linear.residual, dtype);
}

std::string refuse_either(const PlanBuilder& builder, const Argument& operand) {
  const bool is_wide = operand.is_value() && builder.type(operand.value()).dtype == Dtype::f32;
  return refuse_tensor(builder, operand, is_wide ? Dtype::f32 : Dtype::bf16);
}

std::string refuse_computed(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  const Argument& weight = read_linear(node).weight;
  const std::string refusal = first_refusal({refuse_tensor(builder, weight, dtype), refuse_form(builder, node, dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.constant(weight.value())) return "the weight stays the same";
  return builder.type(weight.value()).sizes.size() == 2 ? "" : "the weight is no matrix";
}

}  // namespace

std::string refuse_linear_f32(const PlanBuilder& builder, const Node& node) {
  return first_refusal(
      {refuse_weight(builder, read_linear(node).weight, Dtype::f32, 2), refuse_form(builder, node, Dtype::f32)});
}

std::string refuse_linear_matmul(const PlanBuilder& builder, const Node& node) {
  return refuse_computed(builder, node, Dtype::f32);
}

std::string refuse_linear_casts(const PlanBuilder& builder, const Node& node) {
  const LinearArguments linear = read_linear(node);
  const Argument result(node.result());
  const std::string refusal = first_refusal(
      {refuse_activation(node.argument("act")), refuse_either(builder, linear.x), refuse_either(builder, linear.weight),
       refuse_either(builder, result), linear.bias.is_none() ? std::string() : refuse_either(builder, linear.bias)});
  if (!refusal.empty()) return refusal;
  if (builder.type(linear.x.value()).sizes.empty()) return "x has no dimensions";
  if (builder.type(linear.weight.value()).sizes.size() != 2) return "the weight is no matrix";
  if (!linear.bias.is_none() && builder.type(linear.bias.value()).sizes.size() != 1) return "the bias is no vector";
  return refuse_residual(builder, node, linear.residual, builder.type(node.result()).dtype);
}

std::string refuse_linear_matmul_bf16(const PlanBuilder& builder, const Node& node) {
  return refuse_computed(builder, node, Dtype::bf16);
}

void emit_linear_f32(PlanBuilder& builder, const Node& node) {
  const LinearArguments linear = read_linear(node);
  const at::Tensor& weight = *builder.constant(linear.weight.value());
  const int64_t outputs = weight.size(0), inputs = weight.size(1);
  const std::string name = builder.program().find_weight(linear.weight.value())->name + ".linear_f32";
  if (!builder.has_packed(name)) {
    Array packed = make_array(Dtype::f32, {packed_linear_f32_size(outputs, inputs)});
    pack_linear_f32(weight.const_data_ptr<float>(), outputs, inputs, weight.stride(0), weight.stride(1),
                    packed.data<float>());
    builder.note_packed_rows(weight, builder.add_packed(name, std::move(packed)));
  }
  LinearF32Step step;
  step.outputs = outputs;
  step.finite_weight = is_finite(weight);
  step.activation = translate_activation(linear.activation);
  step.x = {builder.use_dense(linear.x, node)};
  step.weight = {builder.find_packed(name)};
  step.bias = {builder.use(linear.bias)};
  step.residual = {builder.use_dense(linear.residual, node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

namespace {

template <typename Step>
void emit_linear_products(PlanBuilder& builder, const Node& node) {
  const LinearArguments linear = read_linear(node);
  // A matrix is read in any order.
  const bool is_matrix = builder.type(linear.x.value()).sizes.size() == 2;
  Step step;
  step.linear = true;
  step.activation = translate_activation(linear.activation);
  step.a = {is_matrix ? builder.use(linear.x) : builder.use_dense(linear.x, node)};
  step.b = {builder.use(linear.weight)};
  step.bias = {builder.use_dense(linear.bias, node)};
  step.residual = {builder.use_dense(linear.residual, node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

}  // namespace

void emit_linear_matmul(PlanBuilder& builder, const Node& node) {
  if (!node.is("lissome::linear_bf16") && builder.type(node.result()).dtype == Dtype::f32) {
    emit_linear_products<MatmulF32Step>(builder, node);
  } else {
    emit_linear_products<MatmulBf16Step>(builder, node);
  }
}

}  // namespace lissome
