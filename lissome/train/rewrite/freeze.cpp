// See freeze.h.
#include "lissome/train/rewrite/freeze.h"

#include <algorithm>
#include <set>

namespace lissome {
namespace {

bool is_frozen(const std::string& name, const std::vector<ParameterGroup>& groups) {
  const auto group =
      std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return matches_pattern(one.pattern, name); });
  return group != groups.end() && group->frozen;
}

bool is_floating_parameter(const Weight& weight) {
  return weight.role == WeightRole::parameter && weight.tensor.is_floating_point();
}

std::string list_parameters(const Program& program) {
  std::vector<std::string> names;
  for (const Weight& weight : program.weights) {
    if (is_floating_parameter(weight)) names.push_back(weight.name);
  }
  return names.empty() ? "none" : join_few(std::move(names), 8);
}

void check_patterns(const Program& program, const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups) {
    const bool fits = std::any_of(program.weights.begin(), program.weights.end(), [&](const Weight& weight) {
      return is_floating_parameter(weight) && matches_pattern(group.pattern, weight.name);
    });
    if (group.frozen && !fits)
      throw_error(ErrorKind::invalid_input, "no parameter matches the pattern ", quote(group.pattern),
                  " of frozen parameters; the model has ", list_parameters(program));
  }
}

}  // namespace

Program freeze_parameters(Program program, const std::vector<ParameterGroup>& groups) {
  check_patterns(program, groups);
  std::set<const void*> frozen;  // storages: one that has several names is frozen by each of them
  for (const Weight& weight : program.weights) {
    if (is_floating_parameter(weight) && (!weight.trains || is_frozen(weight.name, groups)))
      frozen.insert(weight.tensor.const_data_ptr());
  }
  for (Weight& weight : program.weights) {
    if (is_floating_parameter(weight) && frozen.contains(weight.tensor.const_data_ptr()))
      weight.role = WeightRole::buffer;
  }
  return program;
}

std::string describe_still(const Program& program) {
  const auto list = [&](const auto& chosen) {
    std::vector<std::string> names;
    for (const Weight& weight : program.weights) {
      if (weight.role == WeightRole::parameter && chosen(weight)) names.push_back(weight.name);
    }
    return names;
  };
  const auto describe = [](std::vector<std::string> names, const std::string& reason) {
    const std::string count =
        names.size() == 1 ? "1 parameter stays" : std::to_string(names.size()) + " parameters stay";
    return count + " as exported, " + reason + ": " + join_few(std::move(names), 3);
  };
  const auto frozen = list([](const Weight& weight) { return !weight.trains; });
  if (!frozen.empty()) return describe(frozen, "with requires_grad off");
  const auto complex = list([](const Weight& weight) { return weight.tensor.is_complex(); });
  if (!complex.empty()) return describe(complex, "because complex numbers cannot be trained");
  return {};
}

std::vector<ParameterGroup> list_training_groups(const std::vector<ParameterGroup>& groups) {
  std::vector<ParameterGroup> training = groups;
  std::erase_if(training, [](const ParameterGroup& group) { return group.frozen; });
  return training;
}

}  // namespace lissome
