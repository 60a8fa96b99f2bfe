// A multiplication or addition of constants, one number for all or one for each output channel, disappears into the
// convolution or linear before it: the layer scale of ConvNeXt, the scaled query of BART.
#include <ATen/ops/tensor.h>

#include "lissome/pass/channel_affine.h"
#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

// The constant as a number or [channels], when it broadcasts along the channel dimension alone; undefined otherwise.
at::Tensor read_channels(const Rewriter& rewriter, const Argument& argument, const ChannelProducer& producer) {
  if (argument.get<int64_t>() != nullptr || argument.get<double>() != nullptr) {
    return at::tensor(*constant_number(rewriter, argument), at::kDouble);
  }
  const at::Tensor tensor = constant_tensor(rewriter, argument);
  if (!tensor.defined() || !tensor.is_floating_point()) return {};
  if (tensor.dim() == 0) return tensor.to(at::kDouble);
  if (static_cast<size_t>(tensor.dim()) > producer.rank || tensor.scalar_type() != producer.weight.scalar_type())
    return {};
  const int64_t behind = producer.channels_last ? 0 : static_cast<int64_t>(producer.rank) - 2;  // dimensions after it
  const int64_t place = tensor.dim() - 1 - behind;
  if (tensor.numel() == 1) return tensor.to(at::kDouble).reshape({});
  if (place < 0 || tensor.size(place) != producer.channels || tensor.numel() != producer.channels) return {};
  return tensor.to(at::kDouble).reshape({producer.channels});
}

bool fold_into_producer(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  const bool scales = node.is("aten::mul.Tensor");
  const bool shifts = node.is("aten::add.Tensor") || node.is("aten::sub.Tensor");
  if ((!scales && !shifts) || !has_unit_alpha(node)) return false;
  for (const bool swapped : {false, true}) {
    if (swapped && node.is("aten::sub.Tensor")) break;
    const Argument product = rewriter.resolve(node.arguments[swapped ? 1 : 0]);
    const Argument constant = rewriter.resolve(node.arguments[swapped ? 0 : 1]);
    const auto producer = find_channel_producer(rewriter, product);
    if (!producer || rewriter.type_of(node.result()) != rewriter.type_of(product)) continue;
    // A weight that others read (an embedding tied to the last layer) would be kept twice.
    if (rewriter.use_count(rewriter.resolve(producer->node.argument("weight")).value()) > 1) continue;
    at::Tensor numbers = read_channels(rewriter, constant, *producer);
    if (!numbers.defined()) continue;
    if (node.is("aten::sub.Tensor")) numbers = numbers.neg();
    if (absorb_affine(rewriter, position, *producer,
                      scales ? ChannelAffine{numbers, {}} : ChannelAffine{{}, numbers})) {
      return true;
    }
  }
  return false;
}

}  // namespace

int fold_scale(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) fold_into_producer(rewriter, position);
  return rewriter.finish();
}

}  // namespace lissome
