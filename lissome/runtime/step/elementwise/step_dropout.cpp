// dropout: operands x (f32 or bf16) and the seed, one i64; attributes keep, 0 to 1, and stream.
#include <limits>

#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

constexpr ValueRule kDropoutOperands[] = {{"x", {Dtype::f32, Dtype::bf16}}, {"seed", {Dtype::i64}}};
constexpr ValueRule kDropoutResults[] = {{"y", {Dtype::f32, Dtype::bf16}}};
constexpr AttributeRule kDropoutAttributes[] = {
    number_rule("keep", std::numeric_limits<double>::denorm_min(), 1, true),
    integer_rule("stream", INT64_MIN, INT64_MAX, true),
};

constexpr StepSchema kDropoutSchemas[] = {{"dropout", kDropoutOperands, kDropoutResults, kDropoutAttributes}};

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

std::span<const StepSchema> dropout_schemas() { return kDropoutSchemas; }

void bind_dropout(StepBinder& binder) {
  const PlacedValue &x = binder.operand(0), &seed = binder.operand(1), &y = binder.result();
  binder.require_dtype(y, x.dtype);
  binder.require_sizes(y, x.sizes);
  binder.require(seed.elements() == 1, "the seed is ", format_sizes(seed.sizes));
  const double keep = binder.attributes().number("keep", 0);
  if (x.dtype == Dtype::f32) {
    bind_call<DropoutCall>(binder, "dropout", keep);
  } else {
    bind_call<DropoutBf16Call>(binder, "dropout_bf16", keep);
  }
}

}  // namespace lissome
