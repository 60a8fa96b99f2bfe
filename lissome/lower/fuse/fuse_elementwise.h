// Chains of element-wise steps become one step: one pass over memory instead of one a node.
#pragma once

#include "lissome/runtime.h"

namespace lissome {

// An element-wise step moves into the step that alone reads its result, where both work on the same elements and the
// kernel's registers, instructions and operands suffice. Between them values are no longer rounded to bf16; what must
// be rounded, cut or wrapped on its way (to bytes and short integers, from numbers to flags) is left alone. The steps
// keep the order of those that stay; origins are those of all nodes that went in.
void fuse_elementwise_steps(Plan& plan);

}  // namespace lissome
