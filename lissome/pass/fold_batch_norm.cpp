// conv or linear, then batch norm in eval form: y = (W x + b - mean) * s + beta with s = gamma / sqrt(var + eps) is a
// conv with weights W s and bias (b - mean) s + beta. The products are taken in f64 and rounded once.
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

struct Scale {
  at::Tensor factor, offset;  // f64 [channels]: y = x * factor + offset
};

std::optional<Scale> read_batch_norm(Rewriter& rewriter, const Node& node) {
  if (!node.is("aten::batch_norm") || node.argument("training") != Argument(false)) return std::nullopt;
  const auto constant = [&](std::string_view name) {
    return constant_tensor(rewriter.program(), rewriter.resolve(node.argument(name)));
  };
  const at::Tensor mean = constant("running_mean");
  const at::Tensor variance = constant("running_var");
  const std::optional<double> epsilon = constant_number(rewriter.program(), node.argument("eps"));
  if (!mean.defined() || !variance.defined() || !epsilon) return std::nullopt;
  at::Tensor gamma = constant("weight");
  at::Tensor beta = constant("bias");
  // A weight that is no constant cannot be folded; an absent one is 1 and 0.
  if (!gamma.defined() && !node.argument("weight").is_none()) return std::nullopt;
  if (!beta.defined() && !node.argument("bias").is_none()) return std::nullopt;
  if (!gamma.defined()) gamma = at::ones_like(mean);
  if (!beta.defined()) beta = at::zeros({mean.numel()}, mean.options());
  const at::Tensor factor = gamma.to(at::kDouble).mul(variance.to(at::kDouble).add(*epsilon).rsqrt());
  return Scale{factor, beta.to(at::kDouble).sub(mean.to(at::kDouble).mul(factor))};
}

// The weight with its output channels scaled. Transposed weights are [in, out / groups, ...].
at::Tensor scale_channels(const at::Tensor& weight, const at::Tensor& factor, bool transposed, int64_t groups) {
  const at::Tensor wide = weight.to(at::kDouble);
  std::vector<int64_t> shape(static_cast<size_t>(weight.dim()), 1);
  if (!transposed) {
    shape[0] = -1;
    return wide.mul(factor.view(shape)).to(weight.scalar_type());
  }
  std::vector<int64_t> split = weight.sizes().vec();
  split[0] = split[0] / groups;
  split.insert(split.begin(), groups);
  std::vector<int64_t> broadcast(split.size(), 1);
  broadcast[0] = groups;
  broadcast[2] = split[2];
  return wide.reshape(split).mul(factor.reshape(broadcast)).reshape(weight.sizes()).to(weight.scalar_type());
}

struct Target {
  const Node* node;
  std::string_view input;
  bool transposed = false;
  int64_t groups = 1;
};

std::optional<Target> find_target(Rewriter& rewriter, const Argument& input) {
  if (const Node* conv = rewriter.producer(input, "aten::convolution")) {
    const auto* transposed = conv->argument("transposed").get<bool>();
    const auto* groups = conv->argument("groups").get<int64_t>();
    if (transposed == nullptr || groups == nullptr) return std::nullopt;
    return Target{conv, "input", *transposed, *groups};
  }
  if (const Node* linear = rewriter.producer(input, "aten::linear")) {
    // Batch norm works on dimension 1: only for two dimensions is that linear's last.
    const ValueType& type = rewriter.program().value(linear->result()).type;
    if (type.sized && type.sizes.size() == 2) return Target{linear, "input"};
  }
  return std::nullopt;
}

bool fold(Rewriter& rewriter, int position) {
  const Node norm = rewriter.node(position);
  const std::optional<Scale> scale = read_batch_norm(rewriter, norm);
  if (!scale) return false;
  const std::optional<Target> target = find_target(rewriter, norm.argument("input"));
  if (!target || !rewriter.has_one_use(target->node->result())) return false;
  Program& program = rewriter.program();
  const Argument weight_argument = rewriter.resolve(target->node->argument("weight"));
  const Argument bias_argument = rewriter.resolve(target->node->argument("bias"));
  const at::Tensor weight = constant_tensor(program, weight_argument);
  const at::Tensor bias = constant_tensor(program, bias_argument);
  if (!weight.defined() || !weight.is_floating_point() || (!bias.defined() && !bias_argument.is_none())) return false;

  const at::Tensor folded = scale_channels(weight, scale->factor, target->transposed, target->groups);
  at::Tensor offset = scale->offset;
  if (bias.defined()) offset = offset.add(bias.to(at::kDouble).mul(scale->factor));
  const std::string name = program.find_weight(weight_argument.value())->name;
  const ValueId new_weight = program.add_weight(name + ".folded", folded, WeightRole::constant);
  const ValueId new_bias =
      program.add_weight(name + ".folded_bias", offset.to(weight.scalar_type()), WeightRole::constant);
  ArgumentList arguments = target->node->arguments;
  arguments.at(static_cast<size_t>(target->node->op.argument_index("weight"))) = new_weight;
  arguments.at(static_cast<size_t>(target->node->op.argument_index("bias"))) = new_bias;
  rewriter.replace_node(position, target->node->op, std::move(arguments));
  // Reports speak of the layer that computes, not of the norm that vanished into it.
  rewriter.node(position).origin = target->node->origin;
  return true;
}

}  // namespace

int fold_batch_norm(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) fold(rewriter, position);
  return rewriter.finish();
}

}  // namespace lissome
