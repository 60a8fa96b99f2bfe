// For the importers.
#pragma once

#include "lissome/program/program.h"

namespace lissome {

// torch.export, and recordings at several sizes, take a named size for other than 1 where a squeeze keeps it; PyTorch
// would take the dimension away at 1. Raises the least size of such a dimension beyond it, so that 1 is refused and not
// answered with other sizes.
void exclude_ones(Program& program);

}  // namespace lissome
