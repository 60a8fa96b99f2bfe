#include "lissome/runtime/step/attention/bind_attention.h"

namespace lissome {

HeadStrides read_head_strides(const StepBinder& binder, const PlacedValue& value) {
  binder.require(value.sizes.size() == 4, "q, k and v must have 4 dimensions");
  return {value.strides[0], value.strides[1], value.strides[2]};
}

HeadStrides read_result_strides(const StepBinder& binder, const AttentionFields& form, const PlacedValue& value,
                                const Sizes& sizes) {
  if (form.heads_last) {
    binder.require_sizes(value, {sizes[0], sizes[2], sizes[1], sizes[3]});
    return {value.strides[0], value.strides[2], value.strides[1]};
  }
  binder.require_sizes(value, sizes);
  return {value.strides[0], value.strides[1], value.strides[2]};
}

namespace {

void read_mask(const StepBinder& binder, const PlacedValue& mask, AttentionShape& call) {
  const size_t rank = mask.sizes.size();
  binder.require(rank >= 1 && rank <= 4, "the mask has ", rank, " dimensions");
  call.mask_kind = mask.dtype == Dtype::boolean ? MaskKind::chosen : MaskKind::added;
  const int64_t wanted[4] = {call.batch, call.heads, call.queries, call.keys};
  int64_t strides[4] = {};
  for (size_t i = 0; i < rank; ++i) {
    const size_t at = 4 - rank + i;
    binder.require(mask.sizes[i] == wanted[at] || (mask.sizes[i] == 1 && at < 3), "the mask is ",
                   format_sizes(mask.sizes));
    strides[at] = mask.sizes[i] == 1 ? 0 : mask.strides[i];
  }
  call.mask_strides = {strides[0], strides[1], strides[2]};
}

}  // namespace

void read_attention_shape(const StepBinder& binder, const AttentionValues& step, AttentionShape& call) {
  const PlacedValue &q = binder.value(step.q), &k = binder.value(step.k), &v = binder.value(step.v);
  call.q_strides = read_head_strides(binder, q);
  call.k_strides = read_head_strides(binder, k);
  call.v_strides = read_head_strides(binder, v);
  call.batch = q.sizes[0], call.heads = q.sizes[1], call.queries = q.sizes[2], call.size = q.sizes[3];
  call.key_heads = k.sizes[1], call.keys = k.sizes[2], call.value_size = v.sizes[3];
  binder.require(call.key_heads > 0, "there are no heads");
  // Rows of no numbers take no memory, however many there are.
  binder.require(call.batch == 0 || call.heads == 0 || call.queries == 0 ||
                     (call.keys > 0 && call.size > 0 && call.value_size > 0),
                 "an operand is empty");
  binder.require_sizes(k, {call.batch, call.key_heads, call.keys, call.size});
  binder.require_sizes(v, {call.batch, call.key_heads, call.keys, call.value_size});
  binder.require(call.heads % call.key_heads == 0, "heads do not divide into key heads");
  call.causal = step.form.causal;
  call.scale = static_cast<float>(step.form.scale);
  if (step.mask) read_mask(binder, binder.value(step.mask), call);
  // More than scratch takes for keys and values.
  binder.require_product({call.keys + 64, call.size + call.value_size + 128, 64});
}

}  // namespace lissome
