// The guards of an exported program: torch.export follows one branch of a module's code for the sizes of its examples,
// and writes down for which other sizes it would have followed the same.
#pragma once

#include "lissome/program.h"
#include "lissome/program/pt2/archive.h"

namespace lissome {

// Adds the guards of the file ("L['x'].size()[1] % 2 == 0") to the requirements of a program whose inputs are known.
// Throws unsupported for guards of what is no size of an input.
void read_guards(const Pt2Archive& archive, Program& program);

}  // namespace lissome
