// The training schedule as a program: nodes in the order of the schedule, those that run again as copies, each reader
// with the latest run before it. Nothing else changes, so every value is made by the same op from the same values, and
// gradients and state keep their bits.
#pragma once

#include "lissome/program.h"
#include "lissome/train/budget/step_model.h"

namespace lissome {

// `schedule` is one of the program's nodes by their positions, and check_schedule() finds nothing wrong with it.
Program apply_schedule(const Program& program, const RunOrder& schedule);

}  // namespace lissome
