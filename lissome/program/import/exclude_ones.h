// For import_pt2.cpp. Recordings need no such thing: they are compared with the module at size 1.
#pragma once

#include "lissome/program/program.h"

namespace lissome {

// torch.export takes a named size for other than 1 where a squeeze keeps it; PyTorch would take the dimension away
// at 1. Raises the least size of such a dimension beyond it, so that 1 is refused and not answered with other sizes.
void exclude_ones(Program& program);

}  // namespace lissome
