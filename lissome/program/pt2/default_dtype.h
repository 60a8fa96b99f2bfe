// Exports made under torch.set_default_dtype(): the file does not say so, but for its results' dtypes. An op without a
// floating operand gives the default dtype of the process, which is f32 unless Python says otherwise.
#pragma once

#include "lissome/program/program.h"

namespace lissome {

// Writes the dtype of the results that the file names into a node that is about to be added to `program`: as its
// `dtype`, or by conversions of its whole numbers, which are added before it.
void write_default_dtype(Program& program, Node& node);

}  // namespace lissome
