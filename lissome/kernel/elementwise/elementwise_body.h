// Element-wise chains over Floats.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"
#include "lissome/kernel/isa/vector_u8.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/elementwise/activation_slope_body.h"
#include "lissome/kernel/elementwise/elementwise.h"
#include "lissome/kernel/gemm/quantize_body.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"
#include "lissome/kernel/isa/element_blocks.h"

namespace lissome {
namespace {

// target[i] = f(a[i]), of f32, bf16 or u8 in memory; tails are read and written exactly.
template <typename To, typename From, typename Function>
LISSOME_INLINE void map_one(To* target, const From* a, int64_t count, const Function& function) {
  int64_t i = 0;
  for (; i + Floats::kWidth <= count; i += Floats::kWidth) store(target + i, function(load(a + i)));
  if (i < count) store_first(target + i, function(load_first(a + i, count - i)), count - i);
}

template <typename Function>
LISSOME_INLINE void map_two(float* target, const float* a, const float* b, int64_t count, const Function& function) {
  int64_t i = 0;
  for (; i + Floats::kWidth <= count; i += Floats::kWidth) store(target + i, function(load(a + i), load(b + i)));
  if (i < count) {
    store_first(target + i, function(load_first(a + i, count - i), load_first(b + i, count - i)), count - i);
  }
}

void select_block(float* target, const float* a, const float* b, const float* c, int64_t count) {
  int64_t i = 0;
  for (; i + Floats::kWidth <= count; i += Floats::kWidth)
    store(target + i, select_nonzero(load(a + i), load(b + i), load(c + i)));
  if (i == count) return;
  const int64_t left = count - i;
  const Floats chosen = select_nonzero(load_first(a + i, left), load_first(b + i, left), load_first(c + i, left));
  store_first(target + i, chosen, left);
}

void run_activation(float* target, const float* a, int64_t count, Epilogue epilogue) {
  map_one(target, a, count, [epilogue](Floats x) { return activate_vector(epilogue, x); });
}

void run_slope(float* target, const float* a, int64_t count, Epilogue epilogue) {
  switch (epilogue.activation) {
    case Activation::gelu:
      return map_one(target, a, count, [](Floats x) { return slope_of({Activation::gelu, 0, 0}, x); });
    case Activation::gelu_tanh:
      return map_one(target, a, count, [](Floats x) { return slope_of({Activation::gelu_tanh, 0, 0}, x); });
    default: return map_one(target, a, count, [epilogue](Floats x) { return slope_of(epilogue, x); });
  }
}

// The natural logarithm, to one or two last places: of the power of two and, by a polynomial, of what is left in
// [sqrt(1/2), sqrt(2)) (the scheme and coefficients of Cephes' logf). Denormals are numbers here too.
LISSOME_INLINE Floats logarithm(Floats x) {
  const Parts parts = split_power(x);
  const Floats above = are_less(fill(1.41421356f), parts.mantissa);
  const Floats f = select_nonzero(above, parts.mantissa * fill(0.5f), parts.mantissa) - fill(1.0f);
  const Floats power = parts.power + above, square = f * f;
  Floats p = fill(7.0376836292e-2f);
  p = multiply_add(p, f, fill(-1.1514610310e-1f));
  p = multiply_add(p, f, fill(1.1676998740e-1f));
  p = multiply_add(p, f, fill(-1.2420140846e-1f));
  p = multiply_add(p, f, fill(1.4249322787e-1f));
  p = multiply_add(p, f, fill(-1.6668057665e-1f));
  p = multiply_add(p, f, fill(2.0000714765e-1f));
  p = multiply_add(p, f, fill(-2.4999993993e-1f));
  p = multiply_add(p, f, fill(3.3333331174e-1f));
  Floats y = multiply_add(power, fill(-2.12194440e-4f), p * f * square);
  y = subtract_product(fill(0.5f), square, y);
  const Floats finite = multiply_add(power, fill(0.693359375f), f + y);
  const Floats infinity = fill(__builtin_inff()), normal = parts.normal;
  Floats result = select_nonzero(are_less(normal, infinity), finite, normal);  // infinity and NaN as they are
  result = select_nonzero(are_equal(normal, zeros()), zeros() - infinity, result);
  return select_negative(normal, fill(__builtin_nanf("")), result);
}

// What has no vector form.
void run_one_by_one(const ElementInstruction& i, float* target, const float* a, const float* b, int64_t count) {
  switch (i.op) {
    case ElementOp::sine:
      for (int64_t k = 0; k < count; ++k) target[k] = __builtin_sinf(a[k]);
      break;
    case ElementOp::cosine:
      for (int64_t k = 0; k < count; ++k) target[k] = __builtin_cosf(a[k]);
      break;
    default:
      for (int64_t k = 0; k < count; ++k) target[k] = __builtin_powf(a[k], b[k]);
      break;
  }
}

void run_instruction(const ElementInstruction& i, float* target, const float* a, const float* b, const float* c,
                     int64_t count) {
  switch (i.op) {
    case ElementOp::constant: map_one(target, target, count, [&](Floats) { return fill(i.alpha); }); break;
    case ElementOp::activate: run_activation(target, a, count, {static_cast<Activation>(i.b), i.alpha, i.beta}); break;
    case ElementOp::slope: run_slope(target, a, count, {static_cast<Activation>(i.b), i.alpha, i.beta}); break;
    case ElementOp::negate: map_one(target, a, count, [](Floats x) { return fill(-0.0f) - x; }); break;
    case ElementOp::absolute: map_one(target, a, count, [](Floats x) { return absolute_value(x); }); break;
    case ElementOp::exponential: map_one(target, a, count, [](Floats x) { return exponential(x); }); break;
    case ElementOp::square_root: map_one(target, a, count, [](Floats x) { return square_root(x); }); break;
    case ElementOp::reciprocal_root:
      map_one(target, a, count, [](Floats x) { return fill(1.0f) / square_root(x); });
      break;
    case ElementOp::reciprocal: map_one(target, a, count, [](Floats x) { return fill(1.0f) / x; }); break;
    case ElementOp::square: map_one(target, a, count, [](Floats x) { return x * x; }); break;
    case ElementOp::error_function: map_one(target, a, count, [](Floats x) { return error_function(x); }); break;
    case ElementOp::round: map_one(target, a, count, [](Floats x) { return round_to_nearest(x); }); break;
    case ElementOp::round_bf16: map_one(target, a, count, [](Floats x) { return widen_lanes(narrow_lanes(x)); }); break;
    case ElementOp::floor: map_one(target, a, count, [](Floats x) { return round_down(x); }); break;
    case ElementOp::add: map_two(target, a, b, count, [](Floats x, Floats y) { return x + y; }); break;
    case ElementOp::subtract: map_two(target, a, b, count, [](Floats x, Floats y) { return x - y; }); break;
    case ElementOp::multiply: map_two(target, a, b, count, [](Floats x, Floats y) { return x * y; }); break;
    case ElementOp::divide: map_two(target, a, b, count, [](Floats x, Floats y) { return x / y; }); break;
    case ElementOp::maximum:
      // One of the two catches NaN in x, the other NaN in y.
      map_two(target, a, b, count, [](Floats x, Floats y) { return keep_nan(x, max_with(x, y)); });
      break;
    case ElementOp::minimum:
      map_two(target, a, b, count, [](Floats x, Floats y) { return keep_nan(x, min_with(x, y)); });
      break;
    case ElementOp::quantize:
      map_one(target, a, count, [&](Floats x) { return quantize_vector(x, i.alpha, i.beta); });
      break;
    case ElementOp::logarithm: map_one(target, a, count, [](Floats x) { return logarithm(x); }); break;
    case ElementOp::logical_not: map_one(target, a, count, [](Floats x) { return are_equal(x, zeros()); }); break;
    case ElementOp::equal: map_two(target, a, b, count, are_equal); break;
    case ElementOp::unequal: map_two(target, a, b, count, are_unequal); break;
    case ElementOp::less: map_two(target, a, b, count, are_less); break;
    case ElementOp::less_equal: map_two(target, a, b, count, are_less_equal); break;
    case ElementOp::logical_and:
      map_two(target, a, b, count,
              [](Floats x, Floats y) { return select_nonzero(x, are_unequal(y, zeros()), zeros()); });
      break;
    case ElementOp::logical_or:
      map_two(target, a, b, count,
              [](Floats x, Floats y) { return select_nonzero(x, fill(1.0f), are_unequal(y, zeros())); });
      break;
    case ElementOp::select: select_block(target, a, b, c, count); break;
    default: run_one_by_one(i, target, a, b, count); break;
  }
}

template <typename T>
void gather_numbers(const void* data, int64_t at, int64_t stride, int64_t count, float* buffer) {
  const T* from = static_cast<const T*>(data) + at;
  for (int64_t i = 0; i < count; ++i) buffer[i] = static_cast<float>(from[i * stride]);
}

// buffer[i] = data[at + i * stride]; the common dtypes without a question for each element.
void gather_block(Dtype dtype, const void* data, int64_t at, int64_t stride, int64_t count, float* buffer) {
  switch (dtype) {
    case Dtype::f32: return gather_numbers<float>(data, at, stride, count, buffer);
    case Dtype::u8: return gather_numbers<uint8_t>(data, at, stride, count, buffer);
    case Dtype::i8: return gather_numbers<int8_t>(data, at, stride, count, buffer);
    case Dtype::i32: return gather_numbers<int32_t>(data, at, stride, count, buffer);
    case Dtype::i64: return gather_numbers<int64_t>(data, at, stride, count, buffer);
    case Dtype::bf16: {
      const uint16_t* from = static_cast<const uint16_t*>(data) + at;
      for (int64_t i = 0; i < count; ++i) buffer[i] = widen_bf16(from[i * stride]);
      return;
    }
    default:
      for (int64_t i = 0; i < count; ++i) buffer[i] = read_element(dtype, data, at + i * stride);
  }
}

// 1 for all but zero: bytes of bool in a file may be others than 0 and 1.
LISSOME_INLINE Floats make_flag(Floats x) { return are_unequal(x, zeros()); }
LISSOME_INLINE Floats keep(Floats x) { return x; }

// A row of an operand, `count` elements from `at` on: in place where it is dense f32, else converted into `buffer`.
const float* load_row(Dtype dtype, const void* data, int64_t at, int64_t stride, int64_t count, float* buffer) {
  if (stride == 1 && dtype == Dtype::f32) return static_cast<const float*>(data) + at;
  if (stride == 0) {
    const Floats value = fill(read_element(dtype, data, at));
    map_one(buffer, buffer, count, [value](Floats) { return value; });
  } else if (stride == 1 && dtype == Dtype::bf16) {
    map_one(buffer, static_cast<const uint16_t*>(data) + at, count, keep);
  } else if (stride == 1 && dtype == Dtype::u8) {
    map_one(buffer, static_cast<const uint8_t*>(data) + at, count, keep);
  } else if (stride == 1 && dtype == Dtype::boolean) {
    map_one(buffer, static_cast<const uint8_t*>(data) + at, count, make_flag);
  } else {
    gather_block(dtype, data, at, stride, count, buffer);
  }
  return buffer;
}

const float* load_block(const ElementwiseCall& call, int operand, const ElementBlock& block, float* buffer) {
  const void* data = call.x[operand];
  const Dtype dtype = call.x_dtypes[operand];
  const int64_t at = block.offsets[operand], stride = call.strides[operand][call.rank - 1];
  if (is_one_row(call, operand, block)) return load_row(dtype, data, at, stride, block.count(), buffer);
  const int64_t apart = row_stride(call, operand);
  for (int64_t row = 0; row < block.rows; ++row) {
    float* to = buffer + row * block.length;
    const float* from =
        apart == 0 && row > 0 ? buffer : load_row(dtype, data, at + row * apart, stride, block.length, to);
    if (from != to) map_one(to, from, block.length, keep);
  }
  return buffer;
}

// `op` made the block: what it promises of its numbers saves a question for each element.
void store_block(const ElementwiseCall& call, ElementOp op, int64_t at, const float* block, int64_t count) {
  if (call.y_dtype == Dtype::bf16) {
    map_one(static_cast<uint16_t*>(call.y) + at, block, count, keep);
  } else if (call.y_dtype == Dtype::boolean) {
    map_one(static_cast<uint8_t*>(call.y) + at, block, count, make_flag);
  } else if (call.y_dtype == Dtype::u8 && op == ElementOp::quantize) {
    map_one(static_cast<uint8_t*>(call.y) + at, block, count, keep);
  } else {
    for (int64_t i = 0; i < count; ++i) write_element(call.y_dtype, call.y, at + i, block[i]);
  }
}

void run_block(const ElementwiseCall& call, const ElementBlock& block) {
  alignas(64) float buffers[kElementRegisters][kElementBlock];
  const float* registers[kElementRegisters] = {};
  const int64_t count = block.count();
  const bool direct = call.y_dtype == Dtype::f32;
  for (int i = 0; i < call.instructions; ++i) {
    const ElementInstruction& instruction = call.program[i];
    float* target = buffers[instruction.target];
    if (instruction.op == ElementOp::load) {
      registers[instruction.target] = load_block(call, instruction.a, block, target);
      continue;
    }
    const bool last = i + 1 == call.instructions;
    if (last && direct) target = static_cast<float*>(call.y) + block.y_at;
    if (instruction.op == ElementOp::position) {
      for (int64_t k = 0; k < count; ++k) {
        target[k] = instruction.alpha + instruction.beta * static_cast<float>(block.y_at + k);
      }
      registers[instruction.target] = target;
      continue;
    }
    const bool activates = instruction.op == ElementOp::activate || instruction.op == ElementOp::slope;
    run_instruction(instruction, target, registers[instruction.a], activates ? nullptr : registers[instruction.b],
                    registers[instruction.c], count);
    registers[instruction.target] = target;
  }
  const ElementInstruction& last = call.program[call.instructions - 1];
  const float* result = registers[last.target];
  if (!direct) return store_block(call, last.op, block.y_at, result, count);
  if (last.op == ElementOp::load) map_one(static_cast<float*>(call.y) + block.y_at, result, count, keep);
}

LISSOME_INLINE void run_elementwise(const ElementwiseCall& call, int part, int parts) {
  for_each_element_block(call, part, parts, [&](const ElementBlock& block) { run_block(call, block); });
}

}  // namespace
}  // namespace lissome
