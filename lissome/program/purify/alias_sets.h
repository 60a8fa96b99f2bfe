// Which values of a program may share storage: the transitive closure of the effects table over its nodes.
#pragma once

#include <vector>

#include "lissome/program.h"

namespace lissome {

class AliasSets {
 public:
  explicit AliasSets(const Program& program);

  bool may_share(ValueId left, ValueId right) const;
  // Some node writes into this value's storage.
  bool is_written(ValueId id) const;
  bool has_writes() const { return has_writes_; }
  // Equal for values that may share storage.
  int find_class(ValueId id) const { return find_root(static_cast<int>(id)); }

 private:
  int find_root(int id) const;
  void unite(int left, int right);

  mutable std::vector<int> parent_;
  std::vector<bool> written_;  // by root
  bool has_writes_ = false;
};

inline AliasSets find_alias_sets(const Program& program) { return AliasSets(program); }

}  // namespace lissome
