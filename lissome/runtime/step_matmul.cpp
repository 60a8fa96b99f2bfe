// matmul_f32: operands a [batch..., rows, inner] with dense rows and b [batch..., inner, outputs] in any order; batch
// dimensions broadcast.
#include "lissome/runtime/step_rows.h"

namespace lissome {
namespace {

// Strides of the batch dimensions of an operand against those of the result.
void read_batch(const StepBinder& binder, const PlacedValue& value, const PlacedValue& y,
                int64_t (&strides)[kMatmulBatchRank]) {
  const size_t rank = y.sizes.size() - 2, own = value.sizes.size() - 2;
  binder.require(own <= rank, format_sizes(value.sizes), " does not broadcast to ", format_sizes(y.sizes));
  for (size_t i = 0; i < own; ++i) {
    const size_t at = rank - own + i;
    binder.require(value.sizes[i] == y.sizes[at] || value.sizes[i] == 1, format_sizes(value.sizes),
                   " does not broadcast to ", format_sizes(y.sizes));
    strides[at] = value.sizes[i] == 1 ? 0 : value.strides[i];
  }
}

}  // namespace

void bind_matmul_f32(StepBinder& binder) {
  const PlacedValue &a = binder.operand(0), &b = binder.operand(1), &y = binder.result();
  for (const PlacedValue* value : {&a, &b, &y}) {
    binder.require_dtype(*value, Dtype::f32);
    binder.require(value->sizes.size() >= 2 && value->sizes.size() <= kMatmulBatchRank + 2, "a value has ",
                   value->sizes.size(), " dimensions");
  }
  binder.require_row_major(y);
  const size_t a_rank = a.sizes.size(), b_rank = b.sizes.size(), rank = y.sizes.size();
  MatmulF32Call call;
  call.rows = a.sizes[a_rank - 2], call.inner = a.sizes[a_rank - 1], call.outputs = b.sizes[b_rank - 1];
  binder.require(
      b.sizes[b_rank - 2] == call.inner && y.sizes[rank - 2] == call.rows && y.sizes[rank - 1] == call.outputs,
      format_sizes(a.sizes), " times ", format_sizes(b.sizes), " is not ", format_sizes(y.sizes));
  binder.require(call.inner <= 1 || a.strides[a_rank - 1] == 1, "rows of a must be dense");
  call.a_row_stride = a.strides[a_rank - 2];
  call.b_inner_stride = b.strides[b_rank - 2], call.b_output_stride = b.strides[b_rank - 1];
  call.batch_rank = static_cast<int>(rank) - 2;
  double matrices = 1;
  for (size_t i = 0; i + 2 < rank; ++i) {
    call.batch_sizes[i] = y.sizes[i];
    matrices *= static_cast<double>(y.sizes[i]);
  }
  read_batch(binder, a, y, call.a_batch_strides);
  read_batch(binder, b, y, call.b_batch_strides);
  binder.set_call("matmul_f32", call);
  binder.point(&MatmulF32Call::a, a);
  binder.point(&MatmulF32Call::b, b);
  binder.point(&MatmulF32Call::y, y);
  const double products =
      matrices * static_cast<double>(call.rows) * static_cast<double>(call.inner) * static_cast<double>(call.outputs);
  binder.set_products(products);
  binder.set_work(products, 4.0 * static_cast<double>(a.elements() + b.elements() + y.elements()));
  binder.point_scratch(&MatmulF32Call::scratch,
                       binder.parts() * matmul_f32_scratch(call.inner) * int64_t{sizeof(float)});
}

}  // namespace lissome
