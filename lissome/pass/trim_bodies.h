// What a condition or region computes that nobody reads, or is given that its bodies do not read.
#pragma once

#include <functional>

#include "lissome/program.h"

namespace lissome {

// Takes results that are not `needed` out of the node and out of its bodies, with all that only they needed, then
// operands that no body reads any more. Other control nodes stay as they are: what a loop carries belongs together. The
// node keeps at least one result. Returns how many results and operands went.
int trim_bodies(Node& node, const std::function<bool(ValueId)>& needed);

}  // namespace lissome
