// What purify() knows of writing ops: the functional nodes that compute what one writes.
#pragma once

#include <optional>
#include <vector>

#include "lissome/program.h"

namespace lissome {

struct WrittenArgument {
  int position = 0;               // argument that is written
  ValueId value = ValueId::none;  // its new contents
};

// Appends functional nodes in place of `node`, which must read current values. Its results are defined by them; a
// result that is the written argument itself is defined as the new contents. Nothing when the op has no functional
// form.
std::optional<std::vector<WrittenArgument>> emit_functional(Program& program, const Node& node);

// squeeze_, transpose_, detach_ and the like change how a tensor looks at its storage, not what is stored: the op that
// gives that look as a result of its own, or nothing for any other op.
std::optional<Op> find_look_change(const Op& op);

}  // namespace lissome
