// Union-find over values; see alias_sets.h.
#include "lissome/program/purify/alias_sets.h"

#include <numeric>
#include <unordered_map>

namespace lissome {

AliasSets::AliasSets(const Program& program) : parent_(program.values.size()) {
  std::iota(parent_.begin(), parent_.end(), 0);
  std::unordered_map<const void*, int> by_storage;  // tied weights
  for (const Weight& weight : program.weights) {
    if (!weight.tensor.defined() || !weight.tensor.has_storage()) continue;
    const int id = static_cast<int>(weight.value);
    const auto [found, is_new] = by_storage.emplace(weight.tensor.storage().unsafeGetStorageImpl(), id);
    if (!is_new) unite(found->second, id);
  }
  std::vector<int> written;
  for (const Node& node : program.nodes) {
    const Effects effects = find_effects(program, node);
    for (const int position : effects.aliases) {
      for_each_value(node.arguments.at(static_cast<size_t>(position)), [&](ValueId argument) {
        for (const ValueId result : node.results) {
          if (result != ValueId::none) unite(static_cast<int>(argument), static_cast<int>(result));
        }
      });
    }
    for (const int position : effects.writes) {
      for_each_value(node.arguments.at(static_cast<size_t>(position)),
                     [&](ValueId argument) { written.push_back(static_cast<int>(argument)); });
    }
  }
  has_writes_ = !written.empty();
  written_.assign(parent_.size(), false);
  for (const int id : written) written_[static_cast<size_t>(find_root(id))] = true;
}

int AliasSets::find_root(int id) const {
  while (parent_[static_cast<size_t>(id)] != id) {
    int& parent = parent_[static_cast<size_t>(id)];
    parent = parent_[static_cast<size_t>(parent)];
    id = parent;
  }
  return id;
}

void AliasSets::unite(int left, int right) { parent_[static_cast<size_t>(find_root(left))] = find_root(right); }

bool AliasSets::may_share(ValueId left, ValueId right) const {
  return find_root(static_cast<int>(left)) == find_root(static_cast<int>(right));
}

bool AliasSets::is_written(ValueId id) const { return written_[static_cast<size_t>(find_root(static_cast<int>(id)))]; }

std::vector<int> find_alias_classes(const Program& program) {
  const AliasSets sets(program);
  std::vector<int> classes;
  for (size_t i = 0; i < program.values.size(); ++i) classes.push_back(sets.find_class(static_cast<ValueId>(i)));
  return classes;
}

std::vector<bool> find_written_values(const Program& program) {
  const AliasSets sets(program);
  std::vector<bool> written;
  if (!sets.has_writes()) return written;
  for (size_t i = 0; i < program.values.size(); ++i) written.push_back(sets.is_written(static_cast<ValueId>(i)));
  return written;
}

}  // namespace lissome
