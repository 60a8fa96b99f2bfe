#include "lissome/runtime/step/elementwise/elementwise_steps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <sstream>

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

ElementInstruction read_instruction(const StepBinder& binder, const std::string& text, size_t operands) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  std::string name, alpha, beta, more;
  int target = -1, a = -1, b = -1, c = -1;
  stream >> name >> target >> a >> b >> c >> alpha >> beta;
  ElementInstruction instruction;
  const std::optional<ElementOp> known = parse_element_op(name);
  instruction.op = known.value_or(ElementOp::load);
  const bool loads = instruction.op == ElementOp::load, activates = names_activation(instruction.op);
  const int a_limit = loads ? static_cast<int>(operands) : kElementRegisters;
  const int b_limit = activates ? static_cast<int>(Activation::clamp) + 1 : kElementRegisters;
  binder.require(known && !stream.fail() && !(stream >> more) && target >= 0 && target < kElementRegisters && a >= 0 &&
                     a < a_limit && b >= 0 && b < b_limit && c >= 0 && c < kElementRegisters,
                 "instruction ", quote(text), " is broken");
  instruction.target = static_cast<uint8_t>(target);
  instruction.a = static_cast<uint8_t>(a), instruction.b = static_cast<uint8_t>(b),
  instruction.c = static_cast<uint8_t>(c);
  const auto read_number = [&](const std::string& word) {
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    binder.require(error == std::errc() && end == word.data() + word.size(), "instruction ", quote(text), " is broken");
    return static_cast<float>(number);
  };
  instruction.alpha = read_number(alpha), instruction.beta = read_number(beta);
  return instruction;
}

constexpr float kLargestInteger = 1 << 24;

void read_program(const StepBinder& binder, const ElementwiseStep& step, ElementwiseCall& call) {
  const std::vector<std::string>& program = step.program;
  binder.require(!program.empty() && program.size() <= kElementInstructions, program.size(), " instructions");
  std::array<bool, kElementRegisters> filled{};
  call.instructions = static_cast<uint8_t>(program.size());
  for (size_t i = 0; i < program.size(); ++i) {
    const ElementInstruction instruction = read_instruction(binder, program[i], call.operands);
    binder.require(!step.integers || is_integer_operation(instruction.op), "instruction ", quote(program[i]),
                   " is not for integers");
    // Numbers that a register of i64 holds, with room for sums.
    binder.require(!step.integers || (std::fabs(instruction.alpha) <= kLargestInteger &&
                                      std::fabs(instruction.beta) <= kLargestInteger),
                   "instruction ", quote(program[i]), " holds a number out of range");
    const uint8_t read[3] = {instruction.a, instruction.b, instruction.c};
    for (int k = 0; k < count_registers(instruction.op); ++k) {
      binder.require(filled[read[k]], "instruction ", quote(program[i]), " reads an empty register");
    }
    filled[instruction.target] = true;
    call.program[i] = instruction;
  }
}

// Strides of an operand against the result's sizes, zero where it is broadcast.
Sizes broadcast_strides(const StepBinder& binder, const PlacedValue& x, const Sizes& sizes) {
  binder.require(x.sizes.size() <= sizes.size(), format_sizes(x.sizes), " does not broadcast to ", format_sizes(sizes));
  Sizes strides(sizes.size(), 0);
  const size_t added = sizes.size() - x.sizes.size();
  for (size_t i = 0; i < x.sizes.size(); ++i) {
    binder.require(x.sizes[i] == sizes[added + i] || x.sizes[i] == 1, format_sizes(x.sizes), " does not broadcast to ",
                   format_sizes(sizes));
    strides[added + i] = x.sizes[i] == 1 ? 0 : x.strides[i];
  }
  return strides;
}

// Dimensions in the order of the result's memory, neighbours merged where every operand allows it. `strides`: by
// operand.
void lay_out_dimensions(const StepBinder& binder, const PlacedValue& y, const std::vector<Sizes>& strides,
                        ElementwiseCall& call) {
  std::vector<size_t> order(y.sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return y.strides[a] > y.strides[b]; });
  int rank = 0;
  for (const size_t dim : order) {
    const int64_t size = y.sizes[dim];
    if (size == 1) continue;
    bool merges = rank > 0;
    for (size_t i = 0; i < strides.size() && merges; ++i) merges = call.strides[i][rank - 1] == strides[i][dim] * size;
    if (!merges) {
      binder.require(rank < kElementRank, "more than ", kElementRank, " dimensions that do not merge");
      call.sizes[rank] = 1;
      ++rank;
    }
    call.sizes[rank - 1] *= size;
    for (size_t i = 0; i < strides.size(); ++i) call.strides[i][rank - 1] = strides[i][dim];
  }
  if (rank == 0) call.sizes[rank++] = 1;
  call.rank = static_cast<uint8_t>(rank);
}

void bind_elementwise(StepBinder& binder, const ElementwiseStep& step) {
  const PlacedValue& y = binder.value(step.y);
  ElementwiseCall call;
  const size_t operands = step.operands.values.size();
  binder.require(operands <= kElementOperands, operands, " operands");
  call.operands = static_cast<uint8_t>(operands);
  const auto require_known = [&](const PlacedValue& value) {
    binder.require(!step.integers || is_integer_dtype(value.dtype), dtype_name(value.dtype), " is no integer");
  };
  require_known(y);
  call.y_dtype = y.dtype;
  read_program(binder, step, call);
  std::vector<Sizes> strides;
  for (size_t i = 0; i < operands; ++i) {
    const PlacedValue& x = binder.value(step.operands, i);
    require_known(x);
    call.x_dtypes[i] = x.dtype;
    strides.push_back(broadcast_strides(binder, x, y.sizes));
  }
  lay_out_dimensions(binder, y, strides, call);
  binder.set_call(step.integers ? "elementwise_integers" : "elementwise", call);
  for (size_t i = 0; i < operands; ++i) binder.point_at(&ElementwiseCall::x, i, binder.value(step.operands, i));
  binder.point(&ElementwiseCall::y, step.y);
  const auto elements = static_cast<double>(y.elements());
  binder.set_work(20 * elements * call.instructions, elements * static_cast<double>(4 * (operands + 1)));
}

}  // namespace

std::vector<StepRow> list_elementwise_steps() { return {declare_step<ElementwiseStep, bind_elementwise>()}; }

}  // namespace lissome
