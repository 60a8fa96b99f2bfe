// Ties a declared kind of step to its binder: a row for the list of a family.
#pragma once

#include <concepts>

#include "lissome/runtime/step/step_binder.h"
#include "lissome/runtime/step/step_fields.h"

namespace lissome {

// `Bind` takes the binder and the step as it stands in the plan.
template <typename Step, void (*Bind)(StepBinder&, const Step&)>
StepRow declare_step() {
  const SchemaFields& fields = schema_fields<Step>();
  StepRow row{Step::kKernel, [](StepBinder& binder) { Bind(binder, read_step<Step>(binder.step())); }};
  row.view = requires { Step::kIsView; };
  row.transfer = requires { Step::kIsTransfer; };
  row.in_place = fields.reusable;
  row.schema = StepSchema{fields.operands, fields.results, fields.attributes};
  return row;
}

}  // namespace lissome
