// Programs for another device than the processor.
#pragma once

#include "lissome/program.h"

namespace lissome {

// Nodes that name a device, as those that make tensors do, name this one. Weights are shared and stay where they are:
// the reference brings its own copies there.
Program move_to_device(Program program, const std::string& device);

}  // namespace lissome
