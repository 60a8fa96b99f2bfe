// What `lissome inspect` shows of a model: of its program, or of the plan alone where a finished file holds no program.
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
// The weights are those that steps read, in their type and form; ops are counted by the nodes that became steps.
InspectTables describe_plan(const Plan& plan);

}  // namespace lissome
