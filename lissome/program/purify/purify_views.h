// What purify() knows of views: whether a node's result shares storage with its input, and how contents written through
// a view go back into what it looks at.
#pragma once

#include <optional>
#include <vector>

#include "lissome/program.h"

namespace lissome {

// Row-major values, as far as that follows from the program alone; inputs are taken to be so.
class Contiguity {
 public:
  explicit Contiguity(const Program& program);
  bool is_known(ValueId id) const { return known_.at(static_cast<size_t>(id)); }

 private:
  std::vector<bool> known_;
};

// Does the result share storage with argument 0? `unknown` when strides decide that the program does not tell.
enum class Sharing : uint8_t { copy, alias, unknown };
Sharing find_sharing(const Program& program, const Node& node, const Contiguity& contiguity);

// Appends nodes that put `changed`, the new contents of the view that `view` makes of `base`, back into `base`; gives
// the new base, or nothing where no such nodes are known. For an item of a list of views, `view` makes the list.
std::optional<ValueId> write_through_view(Program& program, const Node& view, std::optional<int64_t> item, ValueId base,
                                          ValueId changed);

}  // namespace lissome
