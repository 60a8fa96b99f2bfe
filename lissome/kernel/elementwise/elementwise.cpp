// The portable form: one element at a time, each operation in double, its result rounded as registers of f32 round it.
#include "lissome/kernel/elementwise/elementwise.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <iterator>

#include "lissome/kernel/elementwise/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {
namespace {

// In the order of ElementOp.
constexpr std::string_view kOperations[] = {
    "load",        "constant",        "position",    "activate",   "negate",         "absolute", "exponential",
    "square_root", "reciprocal_root", "reciprocal",  "square",     "error_function", "round",    "round_bf16",
    "floor",       "logarithm",       "sine",        "cosine",     "logical_not",    "add",      "subtract",
    "multiply",    "divide",          "maximum",     "minimum",    "power",          "equal",    "unequal",
    "less",        "less_equal",      "logical_and", "logical_or", "select",         "slope",    "quantize"};
static_assert(std::size(kOperations) == static_cast<size_t>(ElementOp::quantize) + 1);

double quantize(double x, float inverse, float zero) {
  double t = static_cast<float>(x) * inverse;
  t = t > -zero ? t : -zero;
  t = t < 255 - zero ? t : 255 - zero;
  return std::nearbyint(t) + zero;
}

// Denormals of f32 count as zero, whose sign stays, as in the vector forms.
double flush(double x) { return std::fabs(x) < static_cast<double>(FLT_MIN) ? std::copysign(0.0, x) : x; }

// But a logarithm sees them: arithmetic would have lost them here already, integers do not.
double widen(Dtype dtype, const void* data, int64_t at) {
  if (dtype != Dtype::f32) return read_element(dtype, data, at);
  int32_t bits;
  std::memcpy(&bits, static_cast<const float*>(data) + at, sizeof(bits));
  const int32_t magnitude = bits & INT32_MAX;
  if (magnitude > 0x7fffff) return static_cast<const float*>(data)[at];
  return std::copysign(std::ldexp(magnitude, -149), bits);  // a zero has a sign too
}

double run_instruction(const ElementInstruction& i, const double* r) {
  const double a = i.op == ElementOp::logarithm ? r[i.a] : flush(r[i.a]);
  const double b = names_activation(i.op) ? 0 : flush(r[i.b]);  // there b is an activation, no register
  const auto flag = [](bool value) { return value ? 1.0 : 0.0; };
  switch (i.op) {
    case ElementOp::constant: return i.alpha;
    case ElementOp::activate: return activate({static_cast<Activation>(i.b), i.alpha, i.beta}, a);
    case ElementOp::slope: return find_slope({static_cast<Activation>(i.b), i.alpha, i.beta}, a);
    case ElementOp::negate: return -a;
    case ElementOp::absolute: return std::fabs(a);
    case ElementOp::exponential: return std::exp(a);
    case ElementOp::square_root: return std::sqrt(a);
    case ElementOp::reciprocal_root: return 1 / std::sqrt(a);
    case ElementOp::reciprocal: return 1 / a;
    case ElementOp::square: return a * a;
    case ElementOp::error_function: return std::erf(a);
    case ElementOp::round: return std::nearbyint(a);
    case ElementOp::round_bf16: return widen_bf16(narrow_bf16(static_cast<float>(a)));
    case ElementOp::floor: return std::floor(a);
    case ElementOp::logarithm: return std::log(a);
    case ElementOp::sine: return std::sin(a);
    case ElementOp::cosine: return std::cos(a);
    case ElementOp::logical_not: return flag(a == 0);
    case ElementOp::add: return a + b;
    case ElementOp::subtract: return a - b;
    case ElementOp::multiply: return a * b;
    case ElementOp::divide: return a / b;
    case ElementOp::maximum: return std::isnan(a) || a > b ? a : b;
    case ElementOp::minimum: return std::isnan(a) || a < b ? a : b;
    case ElementOp::power: return std::pow(a, b);
    case ElementOp::equal: return flag(a == b);
    case ElementOp::unequal: return flag(a != b);
    case ElementOp::less: return flag(a < b);
    case ElementOp::less_equal: return flag(a <= b);
    case ElementOp::logical_and: return flag(a != 0 && b != 0);
    case ElementOp::logical_or: return flag(a != 0 || b != 0);
    case ElementOp::select: return a != 0 ? b : flush(r[i.c]);
    case ElementOp::quantize: return quantize(a, i.alpha, i.beta);
    case ElementOp::load:
    case ElementOp::position: break;
  }
  return 0;
}

}  // namespace

std::string_view element_op_name(ElementOp op) { return kOperations[static_cast<size_t>(op)]; }

std::optional<ElementOp> parse_element_op(std::string_view name) {
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    if (kOperations[i] == name) return static_cast<ElementOp>(i);
  }
  return std::nullopt;
}

int count_registers(ElementOp op) {
  if (op <= ElementOp::position) return 0;
  if (op == ElementOp::select) return 3;
  return op >= ElementOp::add && op <= ElementOp::logical_or ? 2 : 1;
}

bool names_activation(ElementOp op) { return op == ElementOp::activate || op == ElementOp::slope; }

bool makes_flags(ElementOp op) {
  return op == ElementOp::logical_not || (op >= ElementOp::equal && op <= ElementOp::logical_or);
}

bool is_element_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::u8:
    case Dtype::i8:
    case Dtype::i32:
    case Dtype::i64:
    case Dtype::bf16:
    case Dtype::f16:
    case Dtype::f32:
    case Dtype::boolean: return true;
    default: return false;
  }
}

void elementwise_portable(const ElementwiseCall& call, int part, int parts) {
  int64_t count = 1;
  for (int d = 0; d < call.rank; ++d) count *= call.sizes[d];
  const Range range = split_evenly(count, part, parts);
  for (int64_t at = range.begin; at < range.end; ++at) {
    int64_t offsets[kElementOperands] = {};
    int64_t rest = at;
    for (int d = call.rank - 1; d >= 0; --d) {
      for (int i = 0; i < call.operands; ++i) offsets[i] += rest % call.sizes[d] * call.strides[i][d];
      rest /= call.sizes[d];
    }
    double registers[kElementRegisters] = {};
    for (int i = 0; i < call.instructions; ++i) {
      const ElementInstruction& instruction = call.program[i];
      double& target = registers[instruction.target];
      if (instruction.op == ElementOp::load) {
        target = widen(call.x_dtypes[instruction.a], call.x[instruction.a], offsets[instruction.a]);
      } else if (instruction.op == ElementOp::position) {
        target = instruction.alpha + static_cast<double>(instruction.beta) * static_cast<double>(at);
      } else {
        target = static_cast<float>(run_instruction(instruction, registers));
      }
    }
    write_element(call.y_dtype, call.y, at, static_cast<float>(registers[call.program[call.instructions - 1].target]));
  }
}

}  // namespace lissome
