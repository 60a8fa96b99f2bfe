// A plan as text (JSON) and arrays, as model.lissome carries it. plan_io.cpp owns the form.
#pragma once

#include <string>

#include "lissome/base.h"
#include "lissome/runtime/plan/plan.h"

namespace lissome {

// Sets file.plan and file.plan_arrays. Weights that steps read under their own name are left to file.weights.
void put_plan(ModelFile& file, const Plan& plan);
// A file that runs and holds nothing else: the plan and each of its arrays once, without the program.
ModelFile pack_plan(const Plan& plan);
// Throws invalid_input when the text breaks the form or names what the file does not hold. The plan is checked.
Plan read_plan(const ModelFile& file);

// The JSON alone, for people and tests.
std::string print_plan(const Plan& plan);

}  // namespace lissome
