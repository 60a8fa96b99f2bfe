// See module_forecast.h.
#include "lissome/train/budget/module_forecast.h"

#include <algorithm>
#include <map>

#include "lissome/train/rewrite/keep_modules.h"

namespace lissome {
namespace {

std::string name_row(const Node& node) {
  const std::string module = node.origin ? node.origin->module : std::string();
  const std::string listed = find_listed_module(module);
  if (!listed.empty()) return listed;
  return module.empty() ? "(others)" : module.substr(0, module.find('.'));
}

}  // namespace

std::vector<ModuleForecast> describe_modules(const Program& program, const StepModel& model, const RunOrder& schedule) {
  std::vector<int> runs(model.nodes.size(), 0);
  for (const int position : schedule) ++runs[static_cast<size_t>(position)];
  std::vector<bool> read_backward(model.owner.size(), false);
  for (const StepNode& node : model.nodes) {
    for (const int value : node.reads) {
      const int owner = model.owner[static_cast<size_t>(value)];
      if (owner >= 0 && !node.forward) read_backward[static_cast<size_t>(owner)] = true;
    }
  }
  std::vector<ModuleForecast> rows;
  std::map<std::string, size_t> indices;
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const StepNode& node = model.nodes[i];
    if (!node.forward) continue;
    const std::string name = name_row(program.nodes[i]);
    const auto [index, is_new] = indices.try_emplace(name, rows.size());
    if (is_new) rows.push_back({.module = name});
    ModuleForecast& row = rows[index->second];
    row.recompute_seconds += node.seconds * (runs[i] - 1);
    for (const int value : node.results) {
      const auto at = static_cast<size_t>(value);
      if (model.owner[at] == value && read_backward[at]) (runs[i] > 1 ? row.recomputed : row.kept) += model.bytes[at];
    }
  }
  return rows;
}

}  // namespace lissome
