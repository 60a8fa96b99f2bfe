// conv or linear, then batch norm in eval form: y = (W x + b - mean) * s + beta with s = gamma / sqrt(var + eps) is a
// conv with weights W s and bias (b - mean) s + beta.
#include "lissome/pass/channel_affine.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

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
