// Declarations of every binder, for the step table and for the files that define them; and what binders share.
#pragma once

#include "lissome/runtime/step_binder.h"

namespace lissome {

// Attributes "activation", "alpha", "beta".
Epilogue read_epilogue(const StepBinder& binder);
// none without the operand; attribute "residual_last" puts it after the activation.
ResidualPlace read_residual_place(const StepBinder& binder, size_t operand);

void bind_linear_f32(StepBinder& binder);

}  // namespace lissome
