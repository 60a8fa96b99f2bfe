// Element-wise chains on registers of i64: plain loops over blocks, which the compiler turns into vectors.
#pragma once

#include <type_traits>

#include "lissome/kernel/isa/element_blocks.h"

namespace lissome {
namespace {

// f(first, length) for steps of eight, and one by one for the rest: copies of a fixed length become vectors.
template <typename Function>
void each_step(int64_t count, const Function& f) {
  constexpr int kStep = 8;
  int64_t k = 0;
  for (; k + kStep <= count; k += kStep) f(k, std::integral_constant<int, kStep>());
  for (; k < count; ++k) f(k, std::integral_constant<int, 1>());
}

template <typename T>
void read_integers(const void* data, int64_t at, int64_t stride, int64_t count, int64_t* target) {
  const T* x = static_cast<const T*>(data) + at;
  if (stride != 1) {
    for (int64_t k = 0; k < count; ++k) target[k] = static_cast<int64_t>(x[k * stride]);
    return;
  }
  each_step(count, [&](int64_t k, auto length) {
    T items[length];
    __builtin_memcpy(items, x + k, sizeof(items));
    for (int i = 0; i < length; ++i) target[k + i] = static_cast<int64_t>(items[i]);
  });
}

// A file may hold bytes that are no bool.
inline void read_flags(const void* data, int64_t at, int64_t stride, int64_t count, int64_t* target) {
  const uint8_t* x = static_cast<const uint8_t*>(data) + at;
  for (int64_t k = 0; k < count; ++k) target[k] = x[k * stride] != 0;
}

void load_integers(Dtype dtype, const void* data, int64_t at, int64_t stride, int64_t count, int64_t* target) {
  switch (dtype) {
    case Dtype::u8: read_integers<uint8_t>(data, at, stride, count, target); break;
    case Dtype::i8: read_integers<int8_t>(data, at, stride, count, target); break;
    case Dtype::i32: read_integers<int32_t>(data, at, stride, count, target); break;
    case Dtype::boolean: read_flags(data, at, stride, count, target); break;
    default: read_integers<int64_t>(data, at, stride, count, target); break;
  }
}

template <typename T>
void write_integers(void* data, int64_t at, int64_t count, const int64_t* block) {
  T* y = static_cast<T*>(data) + at;
  each_step(count, [&](int64_t k, auto length) {
    T items[length];
    for (int i = 0; i < length; ++i) items[i] = static_cast<T>(block[k + i]);
    __builtin_memcpy(y + k, items, sizeof(items));
  });
}

// Other dtypes than bool take the low bits, as arithmetic that wraps around does.
void store_integers(Dtype dtype, void* data, int64_t at, int64_t count, const int64_t* block) {
  switch (dtype) {
    case Dtype::u8: write_integers<uint8_t>(data, at, count, block); break;
    case Dtype::i8: write_integers<int8_t>(data, at, count, block); break;
    case Dtype::i32: write_integers<int32_t>(data, at, count, block); break;
    case Dtype::boolean: write_integers<bool>(data, at, count, block); break;
    default: write_integers<int64_t>(data, at, count, block); break;
  }
}

// The target may be an operand.
template <typename Function>
void map_integers(int64_t* target, const int64_t* a, const int64_t* b, int64_t count, const Function& function) {
  each_step(count, [&](int64_t k, auto length) {
    int64_t x[length], y[length], results[length];
    __builtin_memcpy(x, a + k, sizeof(x));
    __builtin_memcpy(y, b + k, sizeof(y));
    for (int i = 0; i < length; ++i) results[i] = function(x[i], y[i]);
    __builtin_memcpy(target + k, results, sizeof(results));
  });
}

// Sums and products wrap around.
int64_t add_wrapped(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t multiply_wrapped(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

void run_integers(const ElementInstruction& i, int64_t* target, const int64_t* a, const int64_t* b, const int64_t* c,
                  int64_t y_at, int64_t count) {
  const auto map = [&](const auto& function) { map_integers(target, a, b, count, function); };
  switch (i.op) {
    case ElementOp::constant:
      for (int64_t k = 0; k < count; ++k) target[k] = static_cast<int64_t>(i.alpha);
      break;
    case ElementOp::position:
      for (int64_t k = 0; k < count; ++k) {
        target[k] =
            add_wrapped(static_cast<int64_t>(i.alpha), multiply_wrapped(static_cast<int64_t>(i.beta), y_at + k));
      }
      break;
    case ElementOp::negate: map([](int64_t x, int64_t) { return multiply_wrapped(x, -1); }); break;
    case ElementOp::absolute: map([](int64_t x, int64_t) { return x < 0 ? multiply_wrapped(x, -1) : x; }); break;
    case ElementOp::square: map([](int64_t x, int64_t) { return multiply_wrapped(x, x); }); break;
    case ElementOp::logical_not: map([](int64_t x, int64_t) { return int64_t{x == 0}; }); break;
    case ElementOp::add: map([](int64_t x, int64_t y) { return add_wrapped(x, y); }); break;
    case ElementOp::subtract: map([](int64_t x, int64_t y) { return add_wrapped(x, multiply_wrapped(y, -1)); }); break;
    case ElementOp::multiply: map([](int64_t x, int64_t y) { return multiply_wrapped(x, y); }); break;
    case ElementOp::maximum: map([](int64_t x, int64_t y) { return x > y ? x : y; }); break;
    case ElementOp::minimum: map([](int64_t x, int64_t y) { return x < y ? x : y; }); break;
    case ElementOp::equal: map([](int64_t x, int64_t y) { return int64_t{x == y}; }); break;
    case ElementOp::unequal: map([](int64_t x, int64_t y) { return int64_t{x != y}; }); break;
    case ElementOp::less: map([](int64_t x, int64_t y) { return int64_t{x < y}; }); break;
    case ElementOp::less_equal: map([](int64_t x, int64_t y) { return int64_t{x <= y}; }); break;
    case ElementOp::logical_and: map([](int64_t x, int64_t y) { return int64_t{x != 0 && y != 0}; }); break;
    case ElementOp::logical_or: map([](int64_t x, int64_t y) { return int64_t{x != 0 || y != 0}; }); break;
    default:
      for (int64_t k = 0; k < count; ++k) target[k] = a[k] != 0 ? b[k] : c[k];
      break;
  }
}

void load_integer_block(const ElementwiseCall& call, int operand, const ElementBlock& block, int64_t* target) {
  const bool one = is_one_row(call, operand, block);
  const int64_t rows = one ? 1 : block.rows, length = one ? block.count() : block.length;
  const int64_t apart = row_stride(call, operand), stride = call.strides[operand][call.rank - 1];
  for (int64_t row = 0; row < rows; ++row) {
    load_integers(call.x_dtypes[operand], call.x[operand], block.offsets[operand] + row * apart, stride, length,
                  target + row * length);
  }
}

void run_integer_block(const ElementwiseCall& call, const ElementBlock& block) {
  int64_t registers[kElementRegisters][kElementBlock];
  const int64_t count = block.count();
  for (int i = 0; i < call.instructions; ++i) {
    const ElementInstruction& instruction = call.program[i];
    int64_t* target = registers[instruction.target];
    if (instruction.op == ElementOp::load) {
      load_integer_block(call, instruction.a, block, target);
    } else {
      run_integers(instruction, target, registers[instruction.a], registers[instruction.b], registers[instruction.c],
                   block.y_at, count);
    }
  }
  store_integers(call.y_dtype, call.y, block.y_at, count, registers[call.program[call.instructions - 1].target]);
}

inline void run_elementwise_integers(const ElementwiseCall& call, int part, int parts) {
  for_each_element_block(call, part, parts, [&](const ElementBlock& block) { run_integer_block(call, block); });
}

}  // namespace
}  // namespace lissome
