// attention, and attention_bf16, the same of bf16: operands q, k, v [batch, heads, rows, size], of any strides but
// dense rows, and perhaps a mask that broadcasts to [batch, heads, queries, keys]: added in the dtype of q, or bool of
// which false excludes. Attributes: scale, causal, heads_last (the result is [batch, queries, heads, size], as models
// transpose it to next).
#include "lissome/runtime/step_rows.h"

namespace lissome {
namespace {

HeadStrides read_strides(const StepBinder& binder, const PlacedValue& value, Dtype dtype) {
  binder.require_dtype(value, dtype);
  binder.require(value.sizes.size() == 4, "q, k and v must have 4 dimensions");
  binder.require(value.sizes[3] == 1 || value.strides[3] == 1, "rows of q, k and v must be dense");
  return {value.strides[0], value.strides[1], value.strides[2]};
}

void read_mask(StepBinder& binder, Dtype dtype, AttentionShape& call) {
  const PlacedValue& mask = binder.operand(3);
  const size_t rank = mask.sizes.size();
  binder.require(rank >= 1 && rank <= 4, "the mask has ", rank, " dimensions");
  binder.require(mask.dtype == dtype || mask.dtype == Dtype::boolean, "the mask must be ", dtype_name(dtype),
                 " or bool");
  call.mask_kind = mask.dtype == dtype ? MaskKind::added : MaskKind::chosen;
  const int64_t wanted[4] = {call.batch, call.heads, call.queries, call.keys};
  int64_t strides[4] = {};
  for (size_t i = 0; i < rank; ++i) {
    const size_t at = 4 - rank + i;
    binder.require(mask.sizes[i] == wanted[at] || (mask.sizes[i] == 1 && at < 3), "the mask is ",
                   format_sizes(mask.sizes));
    strides[at] = mask.sizes[i] == 1 ? 0 : mask.strides[i];
  }
  binder.require(call.keys == 1 || strides[3] == 1, "rows of the mask must be dense");
  call.mask_strides = {strides[0], strides[1], strides[2]};
}

void read_shape(StepBinder& binder, Dtype dtype, AttentionShape& call) {
  const PlacedValue &q = binder.operand(0), &k = binder.operand(1), &v = binder.operand(2), &y = binder.result();
  call.q_strides = read_strides(binder, q, dtype);
  call.k_strides = read_strides(binder, k, dtype);
  call.v_strides = read_strides(binder, v, dtype);
  call.batch = q.sizes[0], call.heads = q.sizes[1], call.queries = q.sizes[2], call.size = q.sizes[3];
  call.key_heads = k.sizes[1], call.keys = k.sizes[2], call.value_size = v.sizes[3];
  binder.require(call.key_heads > 0, "there are no heads");
  binder.require(y.elements() == 0 || (q.elements() > 0 && k.elements() > 0 && v.elements() > 0),
                 "an operand is empty");
  binder.require_sizes(k, {call.batch, call.key_heads, call.keys, call.size});
  binder.require_sizes(v, {call.batch, call.key_heads, call.keys, call.value_size});
  binder.require(call.heads % call.key_heads == 0, "heads do not divide into key heads");
  if (binder.attributes().integer("heads_last", 0) != 0) {
    binder.require_dense(y, dtype, {call.batch, call.queries, call.heads, call.value_size});
    call.y_strides = {y.strides[0], y.strides[2], y.strides[1]};
  } else {
    binder.require_dense(y, dtype, {call.batch, call.heads, call.queries, call.value_size});
    call.y_strides = {y.strides[0], y.strides[1], y.strides[2]};
  }
  call.causal = binder.attributes().integer("causal", 0) != 0;
  call.scale = static_cast<float>(binder.attributes().number("scale", 1));
  if (binder.has_operand(3)) read_mask(binder, dtype, call);
}

// `scratch_bytes`: of one part, by keys, size and value size.
template <typename Call>
void bind_form(StepBinder& binder, const char* kernel, Dtype dtype,
               int64_t (*scratch_bytes)(int64_t keys, int64_t size, int64_t value_size)) {
  Call call;
  read_shape(binder, dtype, call);
  binder.set_call(kernel, call);
  binder.point(&Call::q, binder.operand(0));
  binder.point(&Call::k, binder.operand(1));
  binder.point(&Call::v, binder.operand(2));
  binder.point(&Call::y, binder.result());
  if (binder.has_operand(3)) binder.point(&Call::mask, binder.operand(3));
  const auto products = static_cast<double>(call.batch * call.heads * call.queries) * static_cast<double>(call.keys);
  binder.set_products(products * static_cast<double>(call.size + call.value_size), dtype);
  binder.set_work(products * static_cast<double>(call.size + call.value_size + 16), 0);
  binder.point_scratch(&Call::scratch, binder.parts() * scratch_bytes(call.keys, call.size, call.value_size));
}

}  // namespace

void bind_attention(StepBinder& binder) {
  bind_form<AttentionCall>(binder, "attention", Dtype::f32, [](int64_t keys, int64_t size, int64_t value_size) {
    return attention_scratch(keys, size, value_size) * int64_t{sizeof(float)};
  });
}

void bind_attention_bf16(StepBinder& binder) {
  bind_form<AttentionBf16Call>(binder, "attention_bf16", Dtype::bf16, attention_bf16_scratch);
}

}  // namespace lissome
