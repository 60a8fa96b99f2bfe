#include "lissome/runtime/step/attention/attention_gradient_steps.h"

#include "lissome/runtime/step/attention/bind_attention.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

template <typename Call>
void read_gradient_shape(const StepBinder& binder, const AttentionGradientValues& step, Call& call) {
  read_attention_shape(binder, step, call);
  binder.require(call.heads == call.key_heads, "query heads share key heads");
  // More than scratch takes for queries, and for a copy of the mask.
  binder.require_product({call.queries + 64, call.size + call.value_size + 128, 64});
  binder.require_product({call.queries + 64, call.keys + 64, 8});
  const Sizes y_sizes = {call.batch, call.heads, call.queries, call.value_size};
  for (const Operand& value : {step.y, step.dy}) binder.require_sizes(binder.value(value), y_sizes);
  call.y_strides = read_head_strides(binder, binder.value(step.y));
  call.dy_strides = read_head_strides(binder, binder.value(step.dy));
  binder.require_sizes(binder.value(step.logarithms), {call.batch, call.heads, call.queries});
  const auto read_gradient = [&](const Result& gradient, const Operand& of) {
    return read_result_strides(binder, step.form, binder.value(gradient), binder.value(of).sizes);
  };
  call.dq_strides = read_gradient(step.dq, step.q);
  call.dk_strides = read_gradient(step.dk, step.k);
  call.dv_strides = read_gradient(step.dv, step.v);
}

// `scratch_bytes`: of one part.
template <typename Call, typename Step>
void bind_gradient(StepBinder& binder, const Step& step, Dtype dtype, int64_t (*scratch_bytes)(const Call& call)) {
  Call call;
  read_gradient_shape(binder, step, call);
  binder.set_call(Step::kKernel, call);
  binder.point(&Call::q, step.q);
  binder.point(&Call::k, step.k);
  binder.point(&Call::v, step.v);
  if (step.mask) binder.point(&Call::mask, step.mask);
  binder.point(&Call::y, step.y);
  binder.point(&Call::logarithms, step.logarithms);
  binder.point(&Call::dy, step.dy);
  binder.point(&Call::dq, step.dq);
  binder.point(&Call::dk, step.dk);
  binder.point(&Call::dv, step.dv);
  const auto scores = static_cast<double>(call.batch * call.heads * call.queries) * static_cast<double>(call.keys);
  const double products = scores * static_cast<double>(3 * call.size + 2 * call.value_size);
  binder.set_products(products, dtype);
  binder.set_work(products, 0);
  binder.point_scratch(&Call::scratch, {binder.parts(), scratch_bytes(call)});
}

void bind_attention_gradient(StepBinder& binder, const AttentionGradientStep& step) {
  bind_gradient<AttentionGradientCall>(binder, step, Dtype::f32, [](const AttentionGradientCall& call) {
    return attention_gradient_scratch(call.keys, call.size, call.value_size) * int64_t{sizeof(float)};
  });
}

void bind_attention_gradient_bf16(StepBinder& binder, const AttentionGradientBf16Step& step) {
  bind_gradient<AttentionGradientBf16Call>(binder, step, Dtype::bf16, [](const AttentionGradientBf16Call& call) {
    return attention_gradient_bf16_scratch(call.queries, call.keys, call.size, call.value_size);
  });
}

}  // namespace

std::vector<StepRow> list_attention_gradient_steps() {
  return {declare_step<AttentionGradientStep, bind_attention_gradient>(),
          declare_step<AttentionGradientBf16Step, bind_attention_gradient_bf16>()};
}

}  // namespace lissome
