#include "lissome/lower/plan/plan_links.h"

#include <algorithm>
#include <sstream>

#include "lissome/runtime/step/elementwise/elementwise_steps.h"

namespace lissome {

PlanLinks link_plan(const Plan& plan) {
  PlanLinks links{std::vector<std::vector<int>>(plan.values.size()), std::vector<int>(plan.values.size(), -1)};
  for (size_t at = 0; at < plan.steps.size(); ++at) {
    for (const PlanValueId operand : plan.steps[at].operands) {
      if (is_value(operand)) links.readers[static_cast<size_t>(operand)].push_back(static_cast<int>(at));
    }
    for (const PlanValueId result : plan.steps[at].results)
      links.makers[static_cast<size_t>(result)] = static_cast<int>(at);
  }
  for (const PlanOutput& output : plan.outputs) {
    if (is_value(output.value)) links.readers[static_cast<size_t>(output.value)].push_back(-1);
  }
  for (const PlanWrite& write : plan.writes) links.readers[static_cast<size_t>(write.value)].push_back(-1);
  return links;
}

namespace {

// Empty for other steps and for those over integers.
std::optional<ElementwiseStep> read_elementwise(const PlanStep& step) {
  if (!is_step<ElementwiseStep>(step)) return std::nullopt;
  auto elementwise = read_step<ElementwiseStep>(step);
  if (elementwise.integers) return std::nullopt;
  return elementwise;
}

// The operations by name.
std::vector<std::string> list_operations(const ElementwiseStep& step) {
  std::vector<std::string> operations;
  for (const std::string& text : step.program) operations.push_back(text.substr(0, text.find(' ')));
  return operations;
}

bool combines_two(const PlanStep& step, const char* operation) {
  const auto elementwise = read_elementwise(step);
  if (!elementwise) return false;
  const std::vector<PlanValueId>& operands = elementwise->operands.values;
  return operands.size() == 2 && operands[0] != operands[1] &&
         list_operations(*elementwise) == std::vector<std::string>{"load", "load", operation};
}

}  // namespace

bool is_elementwise(const PlanStep& step) { return read_elementwise(step).has_value(); }
bool is_sum_of_two(const PlanStep& step) { return combines_two(step, "add"); }
bool is_product_of_two(const PlanStep& step) { return combines_two(step, "multiply"); }

std::optional<Epilogue> find_activation(const PlanStep& step) {
  const auto elementwise = read_elementwise(step);
  if (!elementwise || elementwise->operands.values.size() != 1) return std::nullopt;
  if (list_operations(*elementwise) != std::vector<std::string>{"load", "activate"}) return std::nullopt;
  std::istringstream stream(elementwise->program[1]);
  std::string name;
  int target = 0, x = 0, activation = 0, unused = 0;
  Epilogue epilogue;
  stream >> name >> target >> x >> activation >> unused >> epilogue.alpha >> epilogue.beta;
  epilogue.activation = static_cast<Activation>(activation);
  return epilogue;
}

bool lie_alike(const PlanValue& a, const PlanValue& b) {
  const auto has_memory = [](const PlanValue& value) {
    return value.storage != Storage::view && value.storage != Storage::held;
  };
  return a.dtype == b.dtype && a.format == b.format && has_memory(a) && has_memory(b) &&
         std::equal(a.sizes.begin(), a.sizes.end(), b.sizes.begin(), b.sizes.end(),
                    [](const SizeExpression& x, const SizeExpression& y) {
                      return x.constant() == y.constant() && x.text() == y.text();
                    });
}

}  // namespace lissome
