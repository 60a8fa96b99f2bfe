// attention, attention_u8s8, which multiplies bytes, and attention_bf16, the same of bf16: operands q, k, v [batch,
// heads, rows, size], of any strides but dense rows, and perhaps a mask that broadcasts to [batch, heads, queries,
// keys]: added in the dtype of q, or bool of which false excludes. Attributes: scale, causal, heads_last (the result is
// [batch, queries, heads, size], as models transpose it to next). Either may give the logarithms [batch, heads,
// queries] of sums too, in f32. attention_gradient, and attention_gradient_bf16: operands q, k, v, mask or -1, y, the
// logarithms, dy; y and dy of any strides but dense rows. Results dq, dk, dv.
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

constexpr ValueRule kAttentionOperands[] = {
    {"q", {Dtype::f32}, ValueLayout::dense_rows},
    {"k", {Dtype::f32}, ValueLayout::dense_rows},
    {"v", {Dtype::f32}, ValueLayout::dense_rows},
    {"mask", {Dtype::f32, Dtype::boolean}, ValueLayout::dense_rows, Presence::optional},
};
constexpr ValueRule kAttentionBf16Operands[] = {
    {"q", {Dtype::bf16}, ValueLayout::dense_rows},
    {"k", {Dtype::bf16}, ValueLayout::dense_rows},
    {"v", {Dtype::bf16}, ValueLayout::dense_rows},
    {"mask", {Dtype::bf16, Dtype::boolean}, ValueLayout::dense_rows, Presence::optional},
};
constexpr ValueRule kAttentionResults[] = {{"y", {Dtype::f32}},
                                           {"logarithms", {Dtype::f32}, ValueLayout::row_major, Presence::optional}};
constexpr ValueRule kAttentionBf16Results[] = {{"y", {Dtype::bf16}},
                                               {"logarithms", {Dtype::f32}, ValueLayout::row_major, Presence::optional}};
constexpr ValueRule kAttentionU8S8Results[] = {{"y", {Dtype::f32}}};
constexpr ValueRule kAttentionGradientOperands[] = {
    {"q", {Dtype::f32}, ValueLayout::dense_rows},
    {"k", {Dtype::f32}, ValueLayout::dense_rows},
    {"v", {Dtype::f32}, ValueLayout::dense_rows},
    {"mask", {Dtype::f32, Dtype::boolean}, ValueLayout::dense_rows, Presence::optional},
    {"y", {Dtype::f32}, ValueLayout::dense_rows},
    {"logarithms", {Dtype::f32}},
    {"dy", {Dtype::f32}, ValueLayout::dense_rows},
};
constexpr ValueRule kAttentionGradientBf16Operands[] = {
    {"q", {Dtype::bf16}, ValueLayout::dense_rows},
    {"k", {Dtype::bf16}, ValueLayout::dense_rows},
    {"v", {Dtype::bf16}, ValueLayout::dense_rows},
    {"mask", {Dtype::bf16, Dtype::boolean}, ValueLayout::dense_rows, Presence::optional},
    {"y", {Dtype::bf16}, ValueLayout::dense_rows},
    {"logarithms", {Dtype::f32}},
    {"dy", {Dtype::bf16}, ValueLayout::dense_rows},
};
constexpr ValueRule kAttentionGradientResults[] = {{"dq", {Dtype::f32}}, {"dk", {Dtype::f32}}, {"dv", {Dtype::f32}}};
constexpr ValueRule kAttentionGradientBf16Results[] = {
    {"dq", {Dtype::bf16}}, {"dk", {Dtype::bf16}}, {"dv", {Dtype::bf16}}};
constexpr AttributeRule kAttentionAttributes[] = {any_number_rule("scale"), flag_rule("causal"),
                                                  flag_rule("heads_last")};

constexpr int64_t kMostByteProducts = 1 << 16;  // of u8 with s8, whose sum fits s32

constexpr StepSchema kAttentionSchemas[] = {
    {"attention", kAttentionOperands, kAttentionResults, kAttentionAttributes},
    {"attention_bf16", kAttentionBf16Operands, kAttentionBf16Results, kAttentionAttributes},
    {"attention_u8s8", kAttentionOperands, kAttentionU8S8Results, kAttentionAttributes},
    {"attention_gradient", kAttentionGradientOperands, kAttentionGradientResults, kAttentionAttributes},
    {"attention_gradient_bf16", kAttentionGradientBf16Operands, kAttentionGradientBf16Results, kAttentionAttributes},
};

HeadStrides read_strides(const StepBinder& binder, const PlacedValue& value) {
  binder.require(value.sizes.size() == 4, "q, k and v must have 4 dimensions");
  return {value.strides[0], value.strides[1], value.strides[2]};
}

void read_mask(StepBinder& binder, AttentionShape& call) {
  const PlacedValue& mask = binder.operand(3);
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

// Of [batch, heads, rows, size], which may lie as [batch, rows, heads, size].
HeadStrides read_dense(const StepBinder& binder, const PlacedValue& value, const Sizes& sizes) {
  if (binder.attributes().integer("heads_last", 0) != 0) {
    binder.require_sizes(value, {sizes[0], sizes[2], sizes[1], sizes[3]});
    return {value.strides[0], value.strides[2], value.strides[1]};
  }
  binder.require_sizes(value, sizes);
  return {value.strides[0], value.strides[1], value.strides[2]};
}

void read_shape(StepBinder& binder, AttentionShape& call) {
  const PlacedValue &q = binder.operand(0), &k = binder.operand(1), &v = binder.operand(2);
  call.q_strides = read_strides(binder, q);
  call.k_strides = read_strides(binder, k);
  call.v_strides = read_strides(binder, v);
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
  call.causal = binder.attributes().integer("causal", 0) != 0;
  call.scale = static_cast<float>(binder.attributes().number("scale", 1));
  if (binder.has_operand(3)) read_mask(binder, call);
  // More than scratch takes for keys and values.
  binder.require_product({call.keys + 64, call.size + call.value_size + 128, 64});
}

// `scratch_bytes`: of one part, by keys, size and value size.
template <typename Call>
void bind_form(StepBinder& binder, const char* kernel, Dtype multiplied,
               int64_t (*scratch_bytes)(int64_t keys, int64_t size, int64_t value_size)) {
  Call call;
  read_shape(binder, call);
  call.y_strides = read_dense(binder, binder.result(), {call.batch, call.heads, call.queries, call.value_size});
  binder.set_call(kernel, call);
  binder.point(&Call::q, binder.operand(0));
  binder.point(&Call::k, binder.operand(1));
  binder.point(&Call::v, binder.operand(2));
  binder.point(&Call::y, binder.result());
  if (binder.has_operand(3)) binder.point(&Call::mask, binder.operand(3));
  const auto products = static_cast<double>(call.batch * call.heads * call.queries) * static_cast<double>(call.keys);
  binder.set_products(products * static_cast<double>(call.size + call.value_size), multiplied);
  binder.set_work(products * static_cast<double>(call.size + call.value_size + 16), 0);
  binder.point_scratch(&Call::scratch, {binder.parts(), scratch_bytes(call.keys, call.size, call.value_size)});
}

template <typename Call>
void bind_logarithms(StepBinder& binder) {
  if (binder.step().results.size() < 2) return;
  const Sizes& q = binder.operand(0).sizes;
  binder.require_sizes(binder.result(1), {q[0], q[1], q[2]});
  binder.point(&Call::logarithms, binder.result(1));
}

// `scratch_bytes`: of one part.
template <typename Call>
void bind_gradient(StepBinder& binder, const char* kernel, Dtype dtype, int64_t (*scratch_bytes)(const Call& call)) {
  Call call;
  read_shape(binder, call);
  binder.require(call.heads == call.key_heads, "query heads share key heads");
  // More than scratch takes for queries, and for a copy of the mask.
  binder.require_product({call.queries + 64, call.size + call.value_size + 128, 64});
  binder.require_product({call.queries + 64, call.keys + 64, 8});
  const PlacedValue &q = binder.operand(0), &k = binder.operand(1), &v = binder.operand(2);
  const Sizes y_sizes = {call.batch, call.heads, call.queries, call.value_size};
  for (const size_t i : {size_t{4}, size_t{6}}) binder.require_sizes(binder.operand(i), y_sizes);
  call.y_strides = read_strides(binder, binder.operand(4));
  call.dy_strides = read_strides(binder, binder.operand(6));
  binder.require_sizes(binder.operand(5), {call.batch, call.heads, call.queries});
  call.dq_strides = read_dense(binder, binder.result(0), q.sizes);
  call.dk_strides = read_dense(binder, binder.result(1), k.sizes);
  call.dv_strides = read_dense(binder, binder.result(2), v.sizes);
  binder.set_call(kernel, call);
  binder.point(&Call::q, q);
  binder.point(&Call::k, k);
  binder.point(&Call::v, v);
  if (binder.has_operand(3)) binder.point(&Call::mask, binder.operand(3));
  binder.point(&Call::y, binder.operand(4));
  binder.point(&Call::logarithms, binder.operand(5));
  binder.point(&Call::dy, binder.operand(6));
  binder.point(&Call::dq, binder.result(0));
  binder.point(&Call::dk, binder.result(1));
  binder.point(&Call::dv, binder.result(2));
  const auto scores = static_cast<double>(call.batch * call.heads * call.queries) * static_cast<double>(call.keys);
  const double products = scores * static_cast<double>(3 * call.size + 2 * call.value_size);
  binder.set_products(products, dtype);
  binder.set_work(products, 0);
  binder.point_scratch(&Call::scratch, {binder.parts(), scratch_bytes(call)});
}

}  // namespace

std::span<const StepSchema> attention_schemas() { return kAttentionSchemas; }

void bind_attention(StepBinder& binder) {
  bind_form<AttentionCall>(binder, "attention", Dtype::f32, [](int64_t keys, int64_t size, int64_t value_size) {
    return attention_scratch(keys, size, value_size) * int64_t{sizeof(float)};
  });
  bind_logarithms<AttentionCall>(binder);
}

void bind_attention_bf16(StepBinder& binder) {
  bind_form<AttentionBf16Call>(binder, "attention_bf16", Dtype::bf16, attention_bf16_scratch);
  bind_logarithms<AttentionBf16Call>(binder);
}

void bind_attention_u8s8(StepBinder& binder) {
  const Sizes& q = binder.operand(0).sizes;
  binder.require(q.empty() || q.back() <= kMostByteProducts, "rows of ", q.back(),
                 " bytes, whose products are added in s32");
  bind_form<AttentionU8S8Call>(binder, "attention_u8s8", Dtype::u8, attention_u8s8_scratch);
}

void bind_attention_gradient(StepBinder& binder) {
  bind_gradient<AttentionGradientCall>(binder, "attention_gradient", Dtype::f32, [](const AttentionGradientCall& call) {
    return attention_gradient_scratch(call.keys, call.size, call.value_size) * int64_t{sizeof(float)};
  });
}

void bind_attention_gradient_bf16(StepBinder& binder) {
  bind_gradient<AttentionGradientBf16Call>(
      binder, "attention_gradient_bf16", Dtype::bf16, [](const AttentionGradientBf16Call& call) {
        return attention_gradient_bf16_scratch(call.queries, call.keys, call.size, call.value_size);
      });
}

}  // namespace lissome
