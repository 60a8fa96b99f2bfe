// Makes an imported program pure. Exports taken for training keep `add_`, `relu_`, `index_put_`, `copy_`, `detach_` and
// batch norm that updates its statistics; here each becomes its functional form, later readers of the same storage read
// the new value, and what reaches a buffer or an input becomes one entry of `program.writes`. Runs at the end of
// import, once per program, bodies included. What cannot be made pure stays as it is: a barrier.
#pragma once

#include "lissome/program/program.h"

namespace lissome {

void purify(Program& program);

}  // namespace lissome
