#include "lissome/runtime/step/gemm/matmul_steps.h"

#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

// Products of a sum that memory does not hold: both factors repeat one number.
constexpr int64_t kMostRepeated = 1 << 20;

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

template <typename Call>
void read_matrices(const StepBinder& binder, const MatmulValues& step, Call& call) {
  const PlacedValue &a = binder.value(step.a), &b = binder.value(step.b), &y = binder.value(step.y);
  for (const PlacedValue* value : {&a, &b, &y}) {
    binder.require(value->sizes.size() >= 2 && value->sizes.size() <= kMatmulBatchRank + 2, "a value has ",
                   value->sizes.size(), " dimensions");
  }
  const size_t a_rank = a.sizes.size(), b_rank = b.sizes.size(), rank = y.sizes.size();
  call.rows = a.sizes[a_rank - 2], call.inner = a.sizes[a_rank - 1], call.outputs = b.sizes[b_rank - 1];
  binder.require(
      b.sizes[b_rank - 2] == call.inner && y.sizes[rank - 2] == call.rows && y.sizes[rank - 1] == call.outputs,
      format_sizes(a.sizes), " times ", format_sizes(b.sizes), " is not ", format_sizes(y.sizes));
  call.a_row_stride = a.strides[a_rank - 2], call.a_inner_stride = a.strides[a_rank - 1];
  call.b_inner_stride = b.strides[b_rank - 2], call.b_output_stride = b.strides[b_rank - 1];
  call.batch_rank = static_cast<int>(rank) - 2;
  for (size_t i = 0; i + 2 < rank; ++i) call.batch_sizes[i] = y.sizes[i];
  read_batch(binder, a, y, call.a_batch_strides);
  read_batch(binder, b, y, call.b_batch_strides);
}

template <typename Call>
void read_rows(const StepBinder& binder, const MatmulValues& step, Call& call) {
  const PlacedValue &x = binder.value(step.a), &weight = binder.value(step.b);
  const bool is_matrix = x.sizes.size() == 2;
  if (!is_matrix) binder.require_row_major(x);
  binder.require(!x.sizes.empty() && weight.sizes.size() == 2 && weight.sizes[1] == x.sizes.back(), "a weight of ",
                 format_sizes(weight.sizes), " does not fit ", format_sizes(x.sizes));
  call.inner = x.sizes.back(), call.outputs = weight.sizes[0];
  Sizes y_sizes = x.sizes;
  y_sizes.back() = call.outputs;
  binder.require_sizes(binder.value(step.y), y_sizes);
  call.rows = 1;
  for (size_t i = 0; i + 1 < x.sizes.size(); ++i) call.rows *= x.sizes[i];
  call.a_row_stride = is_matrix ? x.strides[0] : call.inner;
  call.a_inner_stride = is_matrix ? x.strides[1] : 1;
  call.b_inner_stride = weight.strides[1], call.b_output_stride = weight.strides[0];
}

template <typename Call>
Call read_products(const StepBinder& binder, const MatmulValues& step) {
  Call call;
  if (step.linear) {
    read_rows(binder, step, call);
  } else {
    read_matrices(binder, step, call);
  }
  binder.require(call.inner <= kMostRepeated || call.a_inner_stride != 0 || call.b_inner_stride != 0,
                 "its sums repeat one product ", call.inner, " times, may ", kMostRepeated);
  if (call.inner == 1) call.a_inner_stride = 1;
  call.epilogue = step.activation.epilogue();
  call.residual_place = residual_place(step.residual, step.residual_last);
  return call;
}

// Once the call is set.
template <typename Call>
void point_matmul_values(StepBinder& binder, const MatmulValues& step, Dtype multiplied) {
  const PlacedValue &a = binder.value(step.a), &b = binder.value(step.b), &y = binder.value(step.y);
  binder.point(&Call::a, a);
  binder.point(&Call::b, b);
  binder.point(&Call::y, y);
  if (step.bias) {
    binder.require_sizes(binder.value(step.bias), {y.sizes.back()});
    binder.point(&Call::bias, step.bias);
  }
  if (step.residual) {
    binder.require_dtype(binder.value(step.residual), y.dtype);
    binder.require_sizes(binder.value(step.residual), y.sizes);
    binder.point(&Call::residual, step.residual);
  }
  const double inner = static_cast<double>(step.linear ? a.sizes.back() : b.sizes[b.sizes.size() - 2]);
  const double products = static_cast<double>(y.elements()) * inner;
  const auto bytes = [](const PlacedValue& value) {
    return static_cast<double>(value.elements() * item_size(value.dtype));
  };
  binder.set_products(products, multiplied);
  binder.set_work(products, bytes(a) + bytes(b) + bytes(y));
}

void bind_matmul_f32(StepBinder& binder, const MatmulF32Step& step) {
  auto call = read_products<MatmulF32Call>(binder, step);
  call.y_stride = call.residual_stride = call.outputs;
  binder.set_call("matmul_f32", call);
  point_matmul_values<MatmulF32Call>(binder, step, Dtype::f32);
  if (step.start) {
    binder.require_sizes(binder.value(step.start), binder.value(step.y).sizes);
    binder.point(&MatmulF32Call::start, step.start);
  }
  binder.point_scratch(&MatmulF32Call::scratch, {binder.parts(), matmul_f32_scratch(call.inner), sizeof(float)});
}

void bind_matmul_bf16(StepBinder& binder, const MatmulBf16Step& step) {
  auto call = read_products<MatmulBf16Call>(binder, step);
  call.a_dtype = binder.value(step.a).dtype, call.b_dtype = binder.value(step.b).dtype;
  call.y_dtype = binder.value(step.y).dtype;
  if (step.bias) call.bias_dtype = binder.value(step.bias).dtype;
  binder.set_call("matmul_bf16", call);
  point_matmul_values<MatmulBf16Call>(binder, step, Dtype::bf16);
  binder.point_scratch(&MatmulBf16Call::scratch, {binder.parts(), matmul_bf16_scratch(call)});
}

}  // namespace

std::vector<StepRow> list_matmul_steps() {
  return {declare_step<MatmulF32Step, bind_matmul_f32>(), declare_step<MatmulBf16Step, bind_matmul_bf16>()};
}

}  // namespace lissome
