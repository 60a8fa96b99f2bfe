// A chain of element-wise operations in one pass over memory: operands of any dtype and broadcast are read as f32, a
// short list of instructions runs over blocks that stay in the first-level cache, and the last result is stored.
//
// Instructions work on numbered registers, each a block of kElementBlock floats. Comparisons give 1 and 0. Integers are
// exact up to 2^24; where more is needed, elementwise_integers runs the same calls on registers of i64, with those
// instructions that make sense there.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lissome/base.h"
#include "lissome/kernel/elementwise/activation.h"

namespace lissome {

enum class ElementOp : uint8_t {
  load,      // operand a
  constant,  // alpha
  position,  // alpha + beta * the position in y
  activate,  // the activation numbered b of register a, with alpha and beta
  negate,
  absolute,
  exponential,
  square_root,
  reciprocal_root,
  reciprocal,
  square,
  error_function,
  round,
  round_bf16,  // to the nearest bf16, as storing it and loading it again does
  floor,
  logarithm,
  sine,
  cosine,
  logical_not,
  add,
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  power,
  equal,
  unequal,
  less,
  less_equal,
  logical_and,
  logical_or,
  select,    // a != 0 ? b : c
  slope,     // the derivative, at register a, of the activation numbered b, with alpha and beta
  quantize,  // u8 of register a: inverse scale alpha, zero point beta; NaN becomes 0
};

inline constexpr int kElementBlock = 1024;
inline constexpr int kElementRank = 5;
inline constexpr int kElementOperands = 6;
inline constexpr int kElementRegisters = 10;
inline constexpr int kElementInstructions = 24;

// In the words of plans: "load", "square_root", ...
std::string_view element_op_name(ElementOp op);
std::optional<ElementOp> parse_element_op(std::string_view name);
// How many of a, b and c are registers.
int count_registers(ElementOp op);
// Whether b is an activation, no register.
bool names_activation(ElementOp op);
// Whether it gives 1 and 0 alone.
bool makes_flags(ElementOp op);

struct ElementInstruction {
  ElementOp op = ElementOp::load;
  uint8_t target = 0, a = 0, b = 0, c = 0;
  float alpha = 0, beta = 0;
};

struct ElementwiseCall {
  const void* x[kElementOperands] = {};
  void* y = nullptr;                                     // dense in the order of `sizes`
  int64_t sizes[kElementRank] = {};                      // `rank` of them, outermost first
  int64_t strides[kElementOperands][kElementRank] = {};  // elements; zero where an operand is broadcast
  Dtype x_dtypes[kElementOperands] = {};
  Dtype y_dtype = Dtype::f32;
  uint8_t rank = 1, operands = 1, instructions = 1;  // the last instruction makes the result
  ElementInstruction program[kElementInstructions];
};

// Whether loads and stores know the dtype.
bool is_element_dtype(Dtype dtype);
// Whether elementwise_integers reads and writes the dtype, and knows the operation.
bool is_integer_dtype(Dtype dtype);
bool is_integer_operation(ElementOp op);

}  // namespace lissome
