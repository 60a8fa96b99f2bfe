// conv or linear, then batch norm in eval form: y = (W x + b - mean) * s + beta with s = gamma / sqrt(var + eps) is a
// conv with weights W s and bias (b - mean) s + beta.
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include "lissome/pass/channel_affine.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

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

bool fold_into_convolution(Rewriter& rewriter, int position) {
  const Node& norm = rewriter.node(position);
  const std::optional<ChannelAffine> affine = read_batch_norm(rewriter, norm);
  if (!affine) return false;
  const std::optional<ChannelProducer> producer = find_channel_producer(rewriter, norm.argument("input"));
  // Batch norm works on dimension 1: a convolution's channels always, a linear's only where it is the last.
  if (!producer || (producer->channels_last && producer->rank != 2)) return false;
  return absorb_affine(rewriter, position, *producer, *affine);
}

}  // namespace

int fold_batch_norm(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) fold_into_convolution(rewriter, position);
  return rewriter.finish();
}

}  // namespace lissome
