// matmul_f32 and matmul_bf16: operands a [batch..., rows, inner] and b [batch..., inner, outputs] in any order, batch
// dimensions broadcast; or, with attribute "linear", x [..., inner], dense unless it is a matrix, and a weight
// [outputs, inner] in any order. Then a bias [outputs] or -1 and a residual of the result's sizes or -1. All f32; or
// each bf16 or f32, but the residual of the result's dtype. matmul_f32 may go on from earlier sums: operand 4.
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_rules.h"

namespace lissome {
namespace {

constexpr DtypeSet kEither = {Dtype::bf16, Dtype::f32};

constexpr ValueRule kF32Operands[] = {
    {"a", {Dtype::f32}, ValueLayout::any},
    {"b", {Dtype::f32}, ValueLayout::any},
    {"bias", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
    {"residual", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
    {"start", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
};
constexpr ValueRule kBf16Operands[] = {
    {"a", kEither, ValueLayout::any},
    {"b", kEither, ValueLayout::any},
    {"bias", kEither, ValueLayout::row_major, Presence::optional},
    {"residual", kEither, ValueLayout::row_major, Presence::optional},
};
constexpr ValueRule kF32Results[] = {{"y", {Dtype::f32}}};
constexpr ValueRule kBf16Results[] = {{"y", kEither}};
constexpr AttributeRule kOwn[] = {flag_rule("linear")};
constexpr auto kAttributes = join_rules(kOwn, kEpilogueRules, kResidualRules);

constexpr StepSchema kMatmulSchemas[] = {
    {"matmul_f32", kF32Operands, kF32Results, kAttributes},
    {"matmul_bf16", kBf16Operands, kBf16Results, kAttributes},
};

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
void read_matrices(const StepBinder& binder, const PlacedValue& y, Call& call) {
  const PlacedValue &a = binder.operand(0), &b = binder.operand(1);
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
void read_rows(const StepBinder& binder, const PlacedValue& y, Call& call) {
  const PlacedValue &x = binder.operand(0), &weight = binder.operand(1);
  const bool is_matrix = x.sizes.size() == 2;
  if (!is_matrix) binder.require_row_major(x);
  binder.require(!x.sizes.empty() && weight.sizes.size() == 2 && weight.sizes[1] == x.sizes.back(), "a weight of ",
                 format_sizes(weight.sizes), " does not fit ", format_sizes(x.sizes));
  call.inner = x.sizes.back(), call.outputs = weight.sizes[0];
  Sizes y_sizes = x.sizes;
  y_sizes.back() = call.outputs;
  binder.require_sizes(y, y_sizes);
  call.rows = 1;
  for (size_t i = 0; i + 1 < x.sizes.size(); ++i) call.rows *= x.sizes[i];
  call.a_row_stride = is_matrix ? x.strides[0] : call.inner;
  call.a_inner_stride = is_matrix ? x.strides[1] : 1;
  call.b_inner_stride = weight.strides[1], call.b_output_stride = weight.strides[0];
}

template <typename Call>
Call read_products(const StepBinder& binder, const PlacedValue& y) {
  Call call;
  if (binder.attributes().integer("linear", 0) != 0) {
    read_rows(binder, y, call);
  } else {
    read_matrices(binder, y, call);
  }
  binder.require(call.inner <= kMostRepeated || call.a_inner_stride != 0 || call.b_inner_stride != 0,
                 "its sums repeat one product ", call.inner, " times, may ", kMostRepeated);
  if (call.inner == 1) call.a_inner_stride = 1;
  call.epilogue = read_epilogue(binder);
  call.residual_place = read_residual_place(binder, 3);
  return call;
}

// Once the call is set.
template <typename Call>
void point_values(StepBinder& binder, Dtype multiplied) {
  const PlacedValue &a = binder.operand(0), &b = binder.operand(1), &y = binder.result();
  binder.point(&Call::a, a);
  binder.point(&Call::b, b);
  binder.point(&Call::y, y);
  if (binder.has_operand(2)) {
    binder.require_sizes(binder.operand(2), {y.sizes.back()});
    binder.point(&Call::bias, binder.operand(2));
  }
  if (binder.has_operand(3)) {
    binder.require_dtype(binder.operand(3), y.dtype);
    binder.require_sizes(binder.operand(3), y.sizes);
    binder.point(&Call::residual, binder.operand(3));
  }
  const bool is_linear = binder.attributes().integer("linear", 0) != 0;
  const double inner = static_cast<double>(is_linear ? a.sizes.back() : b.sizes[b.sizes.size() - 2]);
  const double products = static_cast<double>(y.elements()) * inner;
  const auto bytes = [](const PlacedValue& value) {
    return static_cast<double>(value.elements() * item_size(value.dtype));
  };
  binder.set_products(products, multiplied);
  binder.set_work(products, bytes(a) + bytes(b) + bytes(y));
}

}  // namespace

std::span<const StepSchema> matmul_schemas() { return kMatmulSchemas; }

void bind_matmul_f32(StepBinder& binder) {
  const PlacedValue& y = binder.result();
  auto call = read_products<MatmulF32Call>(binder, y);
  call.y_stride = call.residual_stride = call.outputs;
  binder.set_call("matmul_f32", call);
  point_values<MatmulF32Call>(binder, Dtype::f32);
  if (binder.has_operand(4)) {
    binder.require_sizes(binder.operand(4), y.sizes);
    binder.point(&MatmulF32Call::start, binder.operand(4));
  }
  binder.point_scratch(&MatmulF32Call::scratch, {binder.parts(), matmul_f32_scratch(call.inner), sizeof(float)});
}

void bind_matmul_bf16(StepBinder& binder) {
  const PlacedValue& y = binder.result();
  auto call = read_products<MatmulBf16Call>(binder, y);
  call.a_dtype = binder.operand(0).dtype, call.b_dtype = binder.operand(1).dtype, call.y_dtype = y.dtype;
  if (binder.has_operand(2)) call.bias_dtype = binder.operand(2).dtype;
  binder.set_call("matmul_bf16", call);
  point_values<MatmulBf16Call>(binder, Dtype::bf16);
  binder.point_scratch(&MatmulBf16Call::scratch, {binder.parts(), matmul_bf16_scratch(call)});
}

}  // namespace lissome
