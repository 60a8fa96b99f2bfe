#include "lissome/pass/channel_affine.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

namespace lissome {
namespace {

// The weight with its output channels scaled. Transposed weights are [in, out / groups, ...].
at::Tensor scale_channels(const ChannelProducer& producer, const at::Tensor& factor) {
  const at::Tensor wide = producer.weight.to(at::kDouble);
  if (factor.dim() == 0) return wide.mul(factor);
  std::vector<int64_t> shape(static_cast<size_t>(wide.dim()), 1);
  if (!producer.transposed) {
    shape[0] = -1;
    return wide.mul(factor.view(shape));
  }
  std::vector<int64_t> split = wide.sizes().vec();
  split[0] = split[0] / producer.groups;
  split.insert(split.begin(), producer.groups);
  std::vector<int64_t> broadcast(split.size(), 1);
  broadcast[0] = producer.groups;
  broadcast[2] = split[2];
  return wide.reshape(split).mul(factor.reshape(broadcast)).reshape(wide.sizes());
}

at::Tensor fold_bias(const ChannelProducer& producer, const ChannelAffine& affine) {
  at::Tensor bias;
  if (producer.bias.defined()) {
    bias = producer.bias.to(at::kDouble);
    if (affine.factor.defined()) bias = bias.mul(affine.factor);
  }
  if (!affine.offset.defined()) return bias;
  const at::Tensor offset = affine.offset.expand({producer.channels});
  return bias.defined() ? bias.add(offset) : offset.clone();
}

}  // namespace

bool is_finite_weight(const at::Tensor& tensor) { return !tensor.defined() || at::isfinite(tensor).all().item<bool>(); }

std::optional<ChannelAffine> read_batch_norm(Rewriter& rewriter, const Node& node) {
  if (!node.is("aten::batch_norm") || node.argument("training") != Argument(false)) return std::nullopt;
  const auto constant = [&](std::string_view name) {
    return constant_tensor(rewriter, rewriter.resolve(node.argument(name)));
  };
  const at::Tensor mean = constant("running_mean"), variance = constant("running_var");
  const std::optional<double> epsilon = constant_number(rewriter, node.argument("eps"));
  if (!mean.defined() || !variance.defined() || !epsilon) return std::nullopt;
  at::Tensor gamma = constant("weight"), beta = constant("bias");
  // A weight that is no constant cannot be folded; an absent one is 1 and 0.
  if (!gamma.defined() && !node.argument("weight").is_none()) return std::nullopt;
  if (!beta.defined() && !node.argument("bias").is_none()) return std::nullopt;
  if (!gamma.defined()) gamma = at::ones_like(mean);
  if (!beta.defined()) beta = at::zeros_like(mean);
  const at::Tensor factor = gamma.to(at::kDouble).mul(variance.to(at::kDouble).add(*epsilon).rsqrt());
  return ChannelAffine{factor, beta.to(at::kDouble).sub(mean.to(at::kDouble).mul(factor))};
}

std::optional<ChannelProducer> find_channel_producer(Rewriter& rewriter, const Argument& value) {
  const Argument resolved = rewriter.resolve(value);
  const Node* node = resolved.is_value() ? rewriter.producer(resolved.value()) : nullptr;
  if (node == nullptr || !rewriter.has_one_use(resolved.value())) return std::nullopt;
  const bool linear = node->is("aten::linear");
  if (!linear && !node->is("aten::convolution")) return std::nullopt;
  const ValueType& type = rewriter.type_of(resolved);
  const Argument bias = rewriter.resolve(node->argument("bias"));
  ChannelProducer producer{*node, constant_tensor(rewriter, rewriter.resolve(node->argument("weight"))),
                           constant_tensor(rewriter, bias)};
  if (!producer.weight.defined() || !producer.weight.is_floating_point() || !type.sized) return std::nullopt;
  if (!producer.bias.defined() && !bias.is_none()) return std::nullopt;
  producer.channels_last = linear;
  producer.rank = type.sizes.size();
  if (!linear) {
    const auto* transposed = node->argument("transposed").get<bool>();
    const auto* groups = node->argument("groups").get<int64_t>();
    if (transposed == nullptr || groups == nullptr) return std::nullopt;
    producer.transposed = *transposed;
    producer.groups = *groups;
  }
  producer.channels = producer.transposed ? producer.weight.size(1) * producer.groups : producer.weight.size(0);
  return producer;
}

bool absorb_affine(Rewriter& rewriter, int position, const ChannelProducer& producer, const ChannelAffine& affine) {
  const at::ScalarType dtype = producer.weight.scalar_type();
  at::Tensor weight;
  if (affine.factor.defined()) weight = scale_channels(producer, affine.factor).to(dtype);
  const at::Tensor bias = fold_bias(producer, affine);
  const at::Tensor rounded_bias = bias.defined() ? bias.to(dtype) : bias;
  if (!is_finite_weight(weight) || !is_finite_weight(rounded_bias)) return false;
  Program& program = rewriter.program();
  const Node& node = producer.node;
  const std::string name = name_of_weight(program, rewriter.resolve(node.argument("weight")));
  ArgumentList arguments = node.arguments;
  const auto set = [&](std::string_view argument, const std::string& suffix, const at::Tensor& tensor) {
    if (tensor.defined()) {
      arguments.at(static_cast<size_t>(node.op.argument_index(argument))) =
          add_constant(program, name + suffix, tensor);
    }
  };
  set("weight", ".folded", weight);
  set("bias", ".folded_bias", rounded_bias);
  rewriter.replace_node(position, node.op, std::move(arguments));
  // Reports speak of the layer that computes, not of the norm or scale that vanished into it.
  rewriter.node(position).origin = node.origin;
  return true;
}

}  // namespace lissome
