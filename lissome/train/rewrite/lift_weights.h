// Turns weights and state into inputs: values that change from step to step must not be packed into a plan.
#pragma once

#include "lissome/program.h"

namespace lissome {

struct Lifted {
  Program program;                  // without writes
  std::vector<at::Tensor> weights;  // of the last inputs, in their order
  std::vector<at::Tensor> written;  // the tensors that the last outputs are to be copied into, in their order
};

// Floating parameters and written state become inputs "weight.<name>", and written values become outputs
// "state.<name>". Other weights stay. `program` does not change.
Lifted lift_weights(const Program& program);

}  // namespace lissome
