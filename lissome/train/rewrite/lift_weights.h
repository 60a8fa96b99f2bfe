// Weights and state as inputs: what changes from step to step must not be packed when a plan is made.
#pragma once

#include "lissome/program.h"

namespace lissome {

struct Lifted {
  Program program;                  // without writes
  std::vector<at::Tensor> weights;  // of its last inputs, in their order
  std::vector<at::Tensor> written;  // what its last outputs are to be copied into, in their order
};

// Floating parameters and written state become inputs "weight.<name>", what was written becomes outputs "state.<name>";
// other weights stay. `program` is left alone.
Lifted lift_weights(const Program& program);

}  // namespace lissome
