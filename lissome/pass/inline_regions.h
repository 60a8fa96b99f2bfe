// Regions that change nothing when no gradients are asked for: their nodes take their place.
#pragma once

#include "lissome/program.h"

namespace lissome {

// set_grad_enabled regions, and autocast regions that switch autocast off where it is off already; in child programs
// too. Returns how many went.
int inline_regions(Program& program);

}  // namespace lissome
