// See keep_modules.h.
#include "lissome/train/rewrite/keep_modules.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

namespace lissome {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<int> group_nodes(const Program& program, const std::function<int(const std::string&)>& group_of) {
  std::vector<int> groups;
  for (const Node& node : program.nodes) groups.push_back(node.origin ? group_of(node.origin->module) : kNoGroup);
  return groups;
}

}  // namespace

std::string find_listed_module(const std::string& module) {
  for (size_t start = 0; start < module.size();) {
    const size_t end = std::min(module.find('.', start), module.size());
    if (is_number(std::string_view(module).substr(start, end - start))) return module.substr(0, end);
    start = end + 1;
  }
  return {};
}

// Frees values after their last forward reader that the backward pass reads but no forward node of another group does.
RecomputeSet recompute_inside_groups(const StepModel& model, const std::vector<int>& groups) {
  std::vector<int> last_forward(model.owner.size(), -1);
  std::vector<bool> leaves(model.owner.size(), false), read_backward(model.owner.size(), false);
  const auto owner_of = [&](int value) { return model.owner[static_cast<size_t>(value)]; };
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const StepNode& node = model.nodes[i];
    for (const int value : node.results) {
      if (const int owner = owner_of(value); owner >= 0 && node.forward)
        last_forward[static_cast<size_t>(owner)] = static_cast<int>(i);
    }
    for (const int value : node.reads) {
      const int owner = owner_of(value);
      if (owner < 0) continue;
      const auto at = static_cast<size_t>(owner);
      const int home = groups[static_cast<size_t>(model.producer[at])];
      if (!node.forward) read_backward[at] = true;
      if (node.forward) last_forward[at] = static_cast<int>(i);
      if (node.forward && groups[i] != home) leaves[at] = true;
    }
  }
  RecomputeSet recomputed;
  for (size_t value = 0; value < model.owner.size(); ++value) {
    if (model.owner[value] != static_cast<int>(value) || !read_backward[value] || leaves[value]) continue;
    const auto producer = static_cast<size_t>(model.producer[value]);
    const StepNode& node = model.nodes[producer];
    if (groups[producer] == kNoGroup || !node.forward || !node.repeatable) continue;
    recomputed.insert({static_cast<int>(value), last_forward[value]});
  }
  return recomputed;
}

RecomputeSet recompute_inside_modules(const Program& program, const StepModel& model, int modules) {
  std::map<std::string, int> numbers;
  const auto group_of = [&](const std::string& module) {
    const std::string listed = find_listed_module(module);
    if (listed.empty()) return kNoGroup;
    return numbers.try_emplace(listed, static_cast<int>(numbers.size())).first->second / modules;
  };
  const std::vector<int> groups = group_nodes(program, group_of);
  if (numbers.empty()) {
    throw_error(ErrorKind::usage, "--recompute every:", modules,
                " needs a list of modules, such as blocks.0, blocks.1, and the model has none.",
                "\n      Name modules (modules:PATTERN), or let a budget choose (auto).");
  }
  return recompute_inside_groups(model, groups);
}

RecomputeSet recompute_modules(const Program& program, const StepModel& model, const std::string& pattern) {
  bool found = false;
  std::map<std::string, int> numbers;
  const auto group_of = [&](const std::string& module) {
    for (size_t end = module.find('.');; end = module.find('.', end + 1)) {
      const std::string prefix = module.substr(0, end);
      if (!prefix.empty() && matches_pattern(pattern, prefix)) {
        found = true;
        return numbers.try_emplace(prefix, static_cast<int>(numbers.size())).first->second;
      }
      if (end == std::string::npos) return kNoGroup;
    }
  };
  const std::vector<int> groups = group_nodes(program, group_of);
  if (!found) throw_error(ErrorKind::usage, "--recompute modules:", pattern, " names no module of the model");
  return recompute_inside_groups(model, groups);
}

}  // namespace lissome
