// Sizes that torch.export notes wrongly, mended or forgotten when a graph has been read.
#pragma once

#include "lissome/program/program.h"

namespace lissome {

void mend_types(Program& program);

}  // namespace lissome
