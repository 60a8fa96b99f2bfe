#include "lissome/runtime/step/step_fields.h"

#include <algorithm>

namespace lissome {

void StepWriter::finish(const PlanStep& defaults, std::span<const AttributeRule> rules) {
  std::erase_if(step_.attributes.entries, [&](const std::pair<std::string, Attribute>& entry) {
    const auto rule = std::ranges::find(rules, std::string_view(entry.first), &AttributeRule::name);
    if (rule != rules.end() && rule->required) return false;
    const Attribute* usual = defaults.attributes.find(entry.first);
    return usual != nullptr && *usual == entry.second;
  });
  for (std::vector<PlanValueId>* values : {&step_.operands, &step_.results}) {
    while (!values->empty() && !is_value(values->back())) values->pop_back();
  }
}

}  // namespace lissome
