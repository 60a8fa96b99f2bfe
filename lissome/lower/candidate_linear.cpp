// aten::linear and lissome::linear_act in f32: with a weight that stays the same, packed once, or one that is computed,
// as in training.
#include "lissome/lower/candidate_rows.h"
#include "lissome/lower/refusals.h"
#include "lissome/lower/tensors.h"

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
std::string refuse_form(const PlanBuilder& builder, const Node& node) {
  if (!node.is("aten::linear")) {
    const std::string refusal = refuse_activation(node.argument("act"));
    if (!refusal.empty()) return refusal;
  }
  const LinearArguments linear = read_linear(node);
  const std::string refusal =
      first_refusal({refuse_tensor(builder, linear.x, Dtype::f32), refuse_optional(builder, linear.bias, Dtype::f32),
                     refuse_tensor(builder, Argument(node.result()), Dtype::f32)});
  if (!refusal.empty()) return refusal;
  if (builder.type(linear.x.value()).sizes.empty()) return "x has no dimensions";
  if (!linear.bias.is_none() && builder.type(linear.bias.value()).sizes.size() != 1) return "the bias is no vector";
  return refuse_residual(builder, node, linear.residual);
}

}  // namespace

std::string refuse_linear_f32(const PlanBuilder& builder, const Node& node) {
  return first_refusal({refuse_weight(builder, read_linear(node).weight, Dtype::f32, 2), refuse_form(builder, node)});
}

std::string refuse_linear_matmul(const PlanBuilder& builder, const Node& node) {
  const Argument& weight = read_linear(node).weight;
  const std::string refusal = first_refusal({refuse_tensor(builder, weight, Dtype::f32), refuse_form(builder, node)});
  if (!refusal.empty()) return refusal;
  if (builder.constant(weight.value())) return "the weight stays the same";
  return builder.type(weight.value()).sizes.size() == 2 ? "" : "the weight is no matrix";
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
    builder.add_packed(name, std::move(packed));
  }
  PlanStep step;
  step.kernel = "linear_f32";
  step.attributes.set("outputs", outputs);
  if (is_finite(weight)) step.attributes.set("finite_weight", int64_t{1});
  set_activation(step, linear.activation);
  step.operands = {builder.use_dense(linear.x, node), builder.find_packed(name), builder.use(linear.bias),
                   builder.use_dense(linear.residual, node)};
  step.results = {builder.make(node.result())};
  builder.add_step(std::move(step), node);
}

void emit_linear_matmul(PlanBuilder& builder, const Node& node) {
  const LinearArguments linear = read_linear(node);
  PlanStep step;
  step.kernel = "matmul_f32";
  step.attributes.set("linear", int64_t{1});
  set_activation(step, linear.activation);
  step.operands = {builder.use_dense(linear.x, node), builder.use(linear.weight), builder.use_dense(linear.bias, node),
                   builder.use_dense(linear.residual, node)};
  step.results = {builder.make(node.result())};
  builder.add_step(std::move(step), node);
}

}  // namespace lissome
