#include "lissome/runtime/step/attention/attention_steps.h"

#include "lissome/runtime/step/attention/bind_attention.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

constexpr int64_t kMostByteProducts = 1 << 16;  // products of u8 with s8 whose sum fits s32

// `scratch_bytes`: of one part, by keys, size and value size.
template <typename Call, typename Step>
void bind_form(StepBinder& binder, const Step& step, Dtype multiplied,
               int64_t (*scratch_bytes)(int64_t keys, int64_t size, int64_t value_size)) {
  Call call;
  read_attention_shape(binder, step, call);
  const Sizes y_sizes = {call.batch, call.heads, call.queries, call.value_size};
  call.y_strides = read_result_strides(binder, step.form, binder.value(step.y), y_sizes);
  binder.set_call(Step::kKernel, call);
  binder.point(&Call::q, step.q);
  binder.point(&Call::k, step.k);
  binder.point(&Call::v, step.v);
  binder.point(&Call::y, step.y);
  if (step.mask) binder.point(&Call::mask, step.mask);
  const auto products = static_cast<double>(call.batch * call.heads * call.queries) * static_cast<double>(call.keys);
  binder.set_products(products * static_cast<double>(call.size + call.value_size), multiplied);
  binder.set_work(products * static_cast<double>(call.size + call.value_size + 16), 0);
  binder.point_scratch(&Call::scratch, {binder.parts(), scratch_bytes(call.keys, call.size, call.value_size)});
}

template <typename Call>
void point_logarithms(StepBinder& binder, const AttentionForwardValues& step) {
  if (!step.logarithms) return;
  const Sizes& q = binder.value(step.q).sizes;
  binder.require_sizes(binder.value(step.logarithms), {q[0], q[1], q[2]});
  binder.point(&Call::logarithms, step.logarithms);
}

void bind_attention(StepBinder& binder, const AttentionStep& step) {
  bind_form<AttentionCall>(binder, step, Dtype::f32, [](int64_t keys, int64_t size, int64_t value_size) {
    return attention_scratch(keys, size, value_size) * int64_t{sizeof(float)};
  });
  point_logarithms<AttentionCall>(binder, step);
}

void bind_attention_bf16(StepBinder& binder, const AttentionBf16Step& step) {
  bind_form<AttentionBf16Call>(binder, step, Dtype::bf16, attention_bf16_scratch);
  point_logarithms<AttentionBf16Call>(binder, step);
}

void bind_attention_u8s8(StepBinder& binder, const AttentionU8S8Step& step) {
  const Sizes& q = binder.value(step.q).sizes;
  binder.require(q.empty() || q.back() <= kMostByteProducts, "rows of ", q.back(),
                 " bytes, whose products are added in s32");
  bind_form<AttentionU8S8Call>(binder, step, Dtype::u8, attention_u8s8_scratch);
}

}  // namespace

std::vector<StepRow> list_attention_steps() {
  return {declare_step<AttentionStep, bind_attention>(), declare_step<AttentionBf16Step, bind_attention_bf16>(),
          declare_step<AttentionU8S8Step, bind_attention_u8s8>()};
}

}  // namespace lissome
