// The tables of `lissome inspect`: of a model's program, or of its plan if a finished file holds no program.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/report.h"
#include "lissome/runtime.h"

namespace lissome {

struct InspectTables {
  Table inputs, outputs, dimensions, weights, ops;

  std::vector<Table> list() const { return {inputs, outputs, dimensions, weights, ops}; }
};

InspectTables describe_program(const Program& program);
// Lists the weights that steps read, in their type and form. Ops are counted by the nodes that became steps.
InspectTables describe_plan(const Plan& plan);

}  // namespace lissome
