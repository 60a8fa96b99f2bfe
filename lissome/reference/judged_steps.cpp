#include "lissome/reference/judged_steps.h"

#include <ATen/core/ivalue.h>

namespace lissome {
namespace {

template <typename... Parts>
[[noreturn]] void refuse_step(size_t step, const Parts&... parts) {
  throw_error(ErrorKind::invalid_input, "plan: reference step ", step, ": ", parts...);
}

void check_step(const PlanStep& step, size_t position, const Program& program) {
  if (program.inputs.size() != step.operands.size() || program.outputs.size() != step.results.size() ||
      program.nodes.size() != step.origins.size()) {
    refuse_step(position, "it has ", step.operands.size(), " operands, ", step.results.size(), " results and ",
                step.origins.size(), " origins, its program ", program.inputs.size(), ", ", program.outputs.size(),
                " and ", program.nodes.size());
  }
  for (const PlanValueId operand : step.operands) {
    if (!is_value(operand)) refuse_step(position, "an operand is absent; a program has a value for each of its inputs");
  }
  for (const ProgramOutput& output : program.outputs) {
    if (!output.value.is_value()) refuse_step(position, "its program returns a literal or a list, not a value");
  }
  if (!program.writes.empty()) refuse_step(position, "its program writes state; a plan's writes are its own");
}

// Which values of a program may share storage, and which are written.
class AliasFacts {
 public:
  explicit AliasFacts(const Program& program)
      : classes_(find_alias_classes(program)), written_(find_written_values(program)) {}

  bool has_writes() const { return !written_.empty(); }
  bool is_written(ValueId id) const { return has_writes() && written_[static_cast<size_t>(id)]; }
  bool may_share(ValueId left, ValueId right) const {
    return classes_[static_cast<size_t>(left)] == classes_[static_cast<size_t>(right)];
  }

 private:
  std::vector<int> classes_;
  std::vector<bool> written_;  // empty: nothing is
};

// Whose memory a value may lie in, besides memory that the session or libtorch made for it.
struct Lender {
  bool constant = false, caller = false;

  void add(const Lender& other) {
    constant = constant || other.constant;
    caller = caller || other.caller;
  }
};

class LenderTable {
 public:
  explicit LenderTable(const Plan& plan) : plan_(plan), lenders_(plan.values.size()) {
    for (size_t i = 0; i < plan.values.size(); ++i) {
      lenders_[i] = {plan.values[i].storage == Storage::constant, plan.values[i].storage == Storage::input};
    }
  }

  void follow_view(const PlanStep& step) {
    for (const PlanValueId result : step.results) {
      if (plan_.value(result).storage == Storage::view) at(result).add(at(step.operands.at(0)));
    }
  }

  // Programs are straight lines of steps, so that what an operand shares is known before its step.
  void follow_program(const PlanStep& step, size_t position, const Program& program, const AliasFacts& facts) {
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (facts.is_written(program.inputs[i].value) && at(step.operands[i]).constant) {
        refuse_step(position, "its program writes into %", program.value(program.inputs[i].value).name,
                    ", which lies in a constant of the plan");
      }
    }
    for (const Weight& weight : program.weights) {
      if (facts.is_written(weight.value)) {
        refuse_step(position, "its program writes into the constant @", weight.name);
      }
    }
    for (size_t k = 0; k < program.outputs.size(); ++k) {
      const ValueId output = program.outputs[k].value.value();
      Lender& result = at(step.results[k]);
      for (size_t i = 0; i < program.inputs.size(); ++i) {
        if (facts.may_share(program.inputs[i].value, output)) result.add(at(step.operands[i]));
      }
      for (const Weight& weight : program.weights) {
        result.constant = result.constant || facts.may_share(weight.value, output);
      }
    }
  }

  std::vector<bool> list_callers() const {
    std::vector<bool> callers;
    for (const Lender& lender : lenders_) callers.push_back(lender.caller);
    return callers;
  }

 private:
  Lender& at(PlanValueId value) { return lenders_.at(static_cast<size_t>(value)); }

  const Plan& plan_;
  std::vector<Lender> lenders_;
};

std::string describe_held(const c10::IValue& value) {
  if (!value.isTensor()) return value.isNone() ? "none" : value.tagKind();
  if (!value.toTensor().defined()) return "an absent tensor";
  return std::string(dtype_name(dtype_of(value.toTensor().scalar_type()))) +
         format_sizes(value.toTensor().sizes().vec());
}

bool fits_sizes(const PlanValue& planned, const at::Tensor& tensor) {
  if (!planned.sized) return true;
  if (dtype_of(tensor.scalar_type()) != planned.dtype) return false;
  if (tensor.sizes().size() != planned.sizes.size()) return false;
  for (size_t i = 0; i < planned.sizes.size(); ++i) {
    const auto fixed = planned.sizes[i].constant();
    if (fixed && *fixed != tensor.sizes()[i]) return false;
  }
  return true;
}

bool fits_kind(const PlanValue& planned, const c10::IValue& value) {
  switch (planned.kind) {
    // An op leaves a result absent that its arguments switch off.
    case PlanKind::tensor:
      return value.isTensor() && (!value.toTensor().defined() || fits_sizes(planned, value.toTensor()));
    case PlanKind::integer: return value.isInt();
    case PlanKind::floating: return value.isDouble();
    case PlanKind::boolean: return value.isBool();
    case PlanKind::other: return true;
  }
  return false;
}

}  // namespace

JudgedSteps judge_steps(const Plan& plan, const std::vector<std::pair<std::string, at::Tensor>>& weights) {
  JudgedSteps judged;
  LenderTable lenders(plan);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    std::optional<Program>& program = judged.programs.emplace_back();
    if (step.kernel != kReferenceStep) {
      lenders.follow_view(step);
      continue;
    }
    program =
        plan.made_here ? parse_complete_program(step.program, weights) : parse_judged_program(step.program, weights);
    check_step(step, i, *program);
    const AliasFacts facts(*program);
    judged.copies_inputs = judged.copies_inputs || facts.has_writes();
    lenders.follow_program(step, i, *program, facts);
  }
  judged.callers = lenders.list_callers();
  return judged;
}

void check_held(const PlanValue& planned, const c10::IValue& value) {
  if (fits_kind(planned, value)) return;
  std::string wanted(plan_kind_name(planned.kind));
  if (planned.kind == PlanKind::tensor && planned.sized) wanted += " of the planned dtype and sizes";
  throw_error(ErrorKind::invalid_input, "plan: %", planned.name, " is ", describe_held(value), ", the plan says ",
              wanted);
}

}  // namespace lissome
