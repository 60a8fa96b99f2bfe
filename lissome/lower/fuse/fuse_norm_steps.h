// Joins norms with what lies around them. On plans as PlanBuilder makes them, before fuse_elementwise_steps():
//   add -> layer_norm          becomes one layer_norm that adds, and gives the sum away too where others read it
//   mul -> quantize_rows       becomes one quantize_rows with factors, where they are a constant row: smoothed inputs
//   group_norm -> activation   becomes one group_norm that activates on the way out
#pragma once

#include "lissome/runtime.h"

namespace lissome {

void fuse_norm_steps(Plan& plan);

}  // namespace lissome
