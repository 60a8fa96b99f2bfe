// dropout: operands x (f32 or bf16) and the seed, one i64; attributes keep, 0 to 1, and stream.
#include "lissome/runtime/step_rows.h"

namespace lissome {
namespace {

template <typename Call>
void bind_call(StepBinder& binder, std::string_view kernel, double keep) {
  const PlacedValue &x = binder.operand(0), &y = binder.result();
  Call call;
  call.count = x.elements();
  call.stream = static_cast<uint64_t>(binder.attributes().integer("stream"));
  call.threshold = dropout_threshold(keep);
  call.scale = 1 / static_cast<float>(keep);
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  binder.point(&Call::seed, binder.operand(1));
  binder.point(&Call::y, y);
  binder.set_work(3 * static_cast<double>(call.count), 2.0 * static_cast<double>(item_size(x.dtype) * call.count));
}

}  // namespace

void bind_dropout(StepBinder& binder) {
  const PlacedValue &x = binder.operand(0), &seed = binder.operand(1), &y = binder.result();
  binder.require(x.dtype == Dtype::f32 || x.dtype == Dtype::bf16, "x is ", dtype_name(x.dtype));
  binder.require_dense(x, x.dtype, x.sizes);
  binder.require_dense(y, x.dtype, x.sizes);
  binder.require(seed.dtype == Dtype::i64 && seed.elements() == 1, "the seed is ", dtype_name(seed.dtype),
                 format_sizes(seed.sizes));
  const double keep = binder.attributes().number("keep", 0);
  binder.require(keep > 0 && keep <= 1, "keep is ", keep);
  if (x.dtype == Dtype::f32) {
    bind_call<DropoutCall>(binder, "dropout", keep);
  } else {
    bind_call<DropoutBf16Call>(binder, "dropout_bf16", keep);
  }
}

}  // namespace lissome
