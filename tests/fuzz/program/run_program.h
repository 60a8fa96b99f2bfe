// What fuzz_program and fuzz_graph do with a program that has passed its reader: run it on inputs made for it.
#pragma once

#include <cstdint>

#include "lissome/program.h"

namespace lissome {

// Called once, before the first program is read.
void prepare_torch();
// Whether one has too many elements for a program that is made in a fuzzer.
bool has_large_weights(const Program& program);
// False when an input or a weight is too large to be run here. Throws what interpret() throws.
bool run_program(const Program& program, uint64_t data);

}  // namespace lissome
