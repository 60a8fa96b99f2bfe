#include "lissome/lower/fuse/fuse_elementwise.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lissome/lower/fuse/element_program.h"

namespace lissome {
namespace {

bool same_sizes(const PlanValue& left, const PlanValue& right) {
  return std::equal(left.sizes.begin(), left.sizes.end(), right.sizes.begin(), right.sizes.end(),
                    [](const SizeExpression& a, const SizeExpression& b) {
                      return a.constant() == b.constant() && a.text() == b.text();
                    });
}

class ElementwiseFuser {
 public:
  explicit ElementwiseFuser(Plan& plan)
      : plan_(plan), readers_(plan.values.size(), 0), maker_(plan.values.size(), -1) {}

  void run() {
    for (const PlanStep& step : plan_.steps) {
      for (const PlanValueId operand : std::set<PlanValueId>(step.operands.begin(), step.operands.end()))
        count_reader(operand);
    }
    for (const PlanOutput& output : plan_.outputs) count_reader(output.value);
    for (const PlanWrite& write : plan_.writes) count_reader(write.value);
    for (size_t at = 0; at < plan_.steps.size(); ++at) {
      if (is_step<ElementwiseStep>(plan_.steps[at])) {
        while (absorb_operand(plan_.steps[at])) {
        }
      }
      for (const PlanValueId result : plan_.steps[at].results)
        maker_[static_cast<size_t>(result)] = static_cast<int>(at);
    }
    std::erase_if(plan_.steps, [](const PlanStep& step) { return step.kernel.empty(); });
  }

 private:
  void count_reader(PlanValueId value) {
    if (is_value(value)) ++readers_[static_cast<size_t>(value)];
  }

  bool absorb_operand(PlanStep& planned) {
    const auto reader = read_step<ElementwiseStep>(planned);
    for (const PlanValueId operand : reader.operands.values) {
      const int maker = maker_[static_cast<size_t>(operand)];
      if (maker < 0 || readers_[static_cast<size_t>(operand)] != 1) continue;
      PlanStep& before = plan_.steps[static_cast<size_t>(maker)];
      if (!is_step<ElementwiseStep>(before)) continue;
      const auto step = read_step<ElementwiseStep>(before);
      if (!can_move(step, reader)) continue;
      const auto joined = join_steps(step, reader, value_of(step.y).dtype);
      if (!joined) continue;
      planned.origins.insert(planned.origins.begin(), before.origins.begin(), before.origins.end());
      replace_step(planned, *joined);
      before = {};
      return true;
    }
    return false;
  }

  const PlanValue& value_of(const Result& result) const { return plan_.value(result.value); }

  bool can_move(const ElementwiseStep& step, const ElementwiseStep& reader) const {
    const PlanValue &between = value_of(step.y), &result = value_of(reader.y);
    if (between.storage != Storage::arena || !same_sizes(between, result) || between.format != result.format)
      return false;
    if (step.integers != reader.integers) return false;
    if (between.dtype == Dtype::boolean) return makes_flags(read_element_program(step).back().op);
    return step.integers ? between.dtype == Dtype::i64 : between.dtype == Dtype::f32 || between.dtype == Dtype::bf16;
  }

  // `step` makes an operand of `reader`, `between`. Nothing when the kernel cannot hold both. What would be stored as
  // bf16 is rounded all the same: a model may cast to bf16 and back for nothing else.
  static std::optional<ElementwiseStep> join_steps(const ElementwiseStep& step, const ElementwiseStep& reader,
                                                   Dtype between) {
    ElementwiseStep joined = reader;
    std::vector<PlanValueId>& operands = joined.operands.values;
    operands.insert(operands.begin(), step.operands.values.begin(), step.operands.values.end());
    const int shift = static_cast<int>(step.operands.values.size());
    ElementProgram program = read_element_program(step), rest = read_element_program(reader);
    number_anew(program), number_anew(rest);
    int made = static_cast<int>(program.size()) - 1;
    if (between == Dtype::bf16) {
      program.push_back({.op = ElementOp::round_bf16, .target = made + 1, .a = made});
      ++made;
    }
    std::vector<int> number(rest.size(), made);  // in the joined program, by instruction of the reader
    for (size_t at = 0; at < rest.size(); ++at) {
      ElementProgramLine i = rest[at];
      if (i.op == ElementOp::load) {
        if (reader.operands.values[static_cast<size_t>(i.a)] == step.y.value) continue;
        i.a += shift;
      }
      int* const reads[] = {&i.a, &i.b, &i.c};
      for (int k = 0; k < count_registers(i.op); ++k) *reads[k] = number[static_cast<size_t>(*reads[k])];
      i.target = number[at] = static_cast<int>(program.size());
      program.push_back(std::move(i));
    }
    // The last instruction makes the result.
    if (number.back() != static_cast<int>(program.size()) - 1) return std::nullopt;
    if (!merge_operands(operands, program) || program.size() > kElementInstructions) return std::nullopt;
    if (!allocate_registers(program)) return std::nullopt;
    joined.program = write_element_program(program);
    return joined;
  }

  // Each value once; false when there are too many.
  static bool merge_operands(std::vector<PlanValueId>& operands, ElementProgram& program) {
    std::vector<PlanValueId> kept;
    for (ElementProgramLine& i : program) {
      if (i.op != ElementOp::load) continue;
      const PlanValueId value = operands[static_cast<size_t>(i.a)];
      const auto found = std::find(kept.begin(), kept.end(), value);
      i.a = static_cast<int>(found - kept.begin());
      if (found == kept.end()) kept.push_back(value);
    }
    operands = std::move(kept);
    return operands.size() <= kElementOperands;
  }

  Plan& plan_;
  std::vector<int> readers_;  // by value: operands, outputs and writes that name it
  std::vector<int> maker_;    // by value: the step before that makes it, -1 for none
};

}  // namespace

void fuse_elementwise_steps(Plan& plan) { ElementwiseFuser(plan).run(); }

}  // namespace lissome
