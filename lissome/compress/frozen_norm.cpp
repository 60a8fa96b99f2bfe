#include "lissome/compress/frozen_norm.h"

#include "lissome/compress/divide_channels.h"

namespace lissome {

std::optional<FrozenNorm> find_frozen_norm(const Program& program, const Uses& uses, const Layer& layer) {
  const ValueId result = program.nodes[layer.position].result();
  const auto& readers = uses.by_value[static_cast<size_t>(result)];
  if (layer.transposed || readers.size() != 1 || readers[0].first >= static_cast<int>(program.nodes.size())) return {};
  FrozenNorm found;
  found.position = static_cast<size_t>(readers[0].first);
  const Node& norm = program.nodes[found.position];
  // Its channels are dimension 1: of what a linear gives, the last only where there are two.
  const ValueType& type = program.value(result).type;
  if (!norm.is("aten::batch_norm") || norm.argument("training") != Argument(false)) return {};
  if (readers[0].second != 0 || (!layer.is_conv && !(type.sized && type.sizes.size() == 2))) return {};
  const at::Tensor mean = find_constant(program, norm.argument("running_mean")),
                   variance = find_constant(program, norm.argument("running_var"));
  const auto* const epsilon = norm.argument("eps").get<double>();
  found.gamma = norm.argument("weight"), found.beta = norm.argument("bias");
  for (const Argument& factor : {found.gamma, found.beta})
    if (!factor.is_none() && !find_constant(program, factor).defined()) return {};
  if (!mean.defined() || !variance.defined() || epsilon == nullptr || mean.scalar_type() != at::kFloat) return {};
  found.mean = mean;
  found.inverse_deviation = variance.to(at::kDouble).add(*epsilon).rsqrt().to(at::kFloat);
  return found;
}

at::Tensor scale_weight(const Program& program, const at::Tensor& weight, const FrozenNorm& norm) {
  at::Tensor factor = norm.inverse_deviation;
  if (!norm.gamma.is_none()) factor = factor.mul(find_constant(program, norm.gamma));
  return weight.mul(spread_outputs(factor, weight));
}

ScaledWeights add_scaled_weights(Program& program, const Node& layer, const FrozenNorm& norm, const std::string& name) {
  const auto add = [&](const char* op, ArgumentList arguments, const at::Tensor& like) {
    return program.add_node(Op::find(op), std::move(arguments), {make_f32_type(like)}, layer.origin).result();
  };
  const at::Tensor weight = find_constant(program, layer.argument("weight"));
  const at::Tensor& channels = norm.mean;
  ValueId factor = program.add_weight(name + ".inverse_deviation", norm.inverse_deviation, WeightRole::buffer);
  if (!norm.gamma.is_none()) factor = add("aten::mul.Tensor", {norm.gamma, factor}, channels);
  const at::Tensor spread = spread_outputs(channels, weight);
  const ArgumentList sizes(spread.sizes().begin(), spread.sizes().end());
  const ValueId wide = add("aten::reshape", {factor, sizes}, spread);
  ScaledWeights scaled;
  scaled.weight = add("aten::mul.Tensor", {layer.argument("weight"), wide}, weight);
  ValueId shift = program.add_weight(name + ".shift", channels.neg(), WeightRole::buffer);
  if (!layer.argument("bias").is_none()) shift = add("aten::add.Tensor", {layer.argument("bias"), shift, 1}, channels);
  scaled.bias = norm.beta.is_none() ? add("aten::mul.Tensor", {shift, factor}, channels)
                                    : add("aten::addcmul", {norm.beta, shift, factor, 1}, channels);
  return scaled;
}

}  // namespace lissome
