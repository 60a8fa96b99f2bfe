// y * factor + offset, per channel: as batch norm means it, and folded into the weights of what makes y. Shared by
// fold_batch_norm, convert_batch_norm and fold_scale.
#pragma once

#include "lissome/pass/rewrite.h"

namespace lissome {

struct ChannelAffine {
  at::Tensor factor, offset;  // f64 [channels], or [] for all channels; undefined: 1 or 0
};

// What batch norm does in eval form with constant weights; nothing for another node.
std::optional<ChannelAffine> read_batch_norm(Rewriter& rewriter, const Node& node);

// Whether no number of the tensor is infinite or NaN; an undefined one has none.
bool is_finite_weight(const at::Tensor& tensor);

// A convolution or linear with constant weights, read by one reader alone.
struct ChannelProducer {
  Node node;
  at::Tensor weight, bias;  // bias may be undefined
  bool transposed = false;
  int64_t groups = 1;
  bool channels_last = false;  // linear: channels are the last dimension of its result, not dimension 1
  size_t rank = 0;
  int64_t channels = 0;
};
std::optional<ChannelProducer> find_channel_producer(Rewriter& rewriter, const Argument& value);

// Turns the node at `position` into the producer with folded weights, products taken in f64 and rounded once. False,
// and nothing changed, when a folded weight would not be finite.
bool absorb_affine(Rewriter& rewriter, int position, const ChannelProducer& producer, const ChannelAffine& affine);

}  // namespace lissome
