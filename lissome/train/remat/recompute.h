// Turns a training schedule into a program: nodes in the order of the schedule, repeated runs as copies of their nodes.
// Each reader takes the latest run before it. Nothing else changes: the same op computes every value from the same
// values, so gradients and state keep their bits.
#pragma once

#include "lissome/program.h"
#include "lissome/train/budget/step_model.h"

namespace lissome {

// `schedule` names the program's nodes by their positions and must pass check_schedule().
Program apply_schedule(const Program& program, const RunOrder& schedule);

}  // namespace lissome
