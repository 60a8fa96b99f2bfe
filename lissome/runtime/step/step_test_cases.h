// For tests of steps: plans of one step each, made by hand, for the steps that move, normalize, attend and
// differentiate; ways to change them; and what it takes that one runs or is refused.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lissome/kernel.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/step/step_binder.h"

namespace lissome::step_cases {

inline constexpr Format kLast = Format::channels_last;

struct CaseValue {
  Dtype dtype = Dtype::f32;
  Sizes sizes;
  Format format = Format::row_major;
  bool absent = false;
};
inline const CaseValue kAbsent = {.absent = true};

inline CaseValue f32(Sizes sizes, Format format = Format::row_major) { return {Dtype::f32, std::move(sizes), format}; }
inline CaseValue bf16(Sizes sizes, Format format = Format::row_major) {
  return {Dtype::bf16, std::move(sizes), format};
}
inline CaseValue i64(Sizes sizes) { return {Dtype::i64, std::move(sizes)}; }

using Entries = std::vector<std::pair<std::string, Attribute>>;

// A plan, and which of its steps is looked at.
struct StepCase {
  std::string name;
  Plan plan;
  size_t at = 0;

  PlanStep& step() { return plan.steps[at]; }
  const PlanStep& step() const { return plan.steps[at]; }
  const StepSchema& schema() const { return find_step_row(step().kernel).schema; }
  PlanValue& value(PlanValueId id) { return plan.value(id); }
  const PlanValue& value(PlanValueId id) const { return plan.value(id); }
};

inline Attribute text(const char* word) { return std::string(word); }
inline Attribute number(int64_t value) { return value; }
inline Attribute list(std::vector<int64_t> numbers) { return numbers; }
inline Attribute program(std::vector<std::string> lines) { return lines; }

// Operands are constants of zeros, results are outputs. `name`: the kernel, and perhaps more behind a blank.
StepCase make_case(const std::string& name, Entries attributes, const std::vector<CaseValue>& operands,
                   const std::vector<CaseValue>& results);
// x -> file -> y; `at`: the step that is looked at.
StepCase make_spill(size_t at);
// Forms of steps, made by hand.
const std::vector<StepCase>& list_cases();
const StepCase& find_case(std::string_view name);

PlanValueId add_value(Plan& plan, const CaseValue& value, Storage storage);
PlanValueId add_result(Plan& plan, const CaseValue& value, Storage storage = Storage::arena);
Sizes sizes_of(const StepCase& of, PlanValueId id);
void set_dtype(StepCase& changed, PlanValueId id, Dtype dtype);
void set_sizes(StepCase& changed, PlanValueId id, const Sizes& sizes);
// In place of operand `position` a view of one element, of these sizes.
void expand_operand(StepCase& changed, size_t position, const Sizes& sizes);

std::vector<Array> run(const Plan& plan, int threads = 1);
// Of this process: other work of the machine does not count.
double measure_seconds(const std::function<void()>& what);
inline constexpr double kSoon = 1;  // seconds; a hang takes hours
// Runs soon.
void expect_quick(const StepCase& made);
// Refused soon, with the step and these words.
void expect_refusal(const StepCase& broken, const std::string& words);

}  // namespace lissome::step_cases
