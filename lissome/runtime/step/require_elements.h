// A check of binders whose kernels go over a value without its sizes.
#pragma once

#include "lissome/runtime/step/step_binder.h"

namespace lissome {

inline void require_elements(const StepBinder& binder, const PlacedValue& value, int64_t elements) {
  binder.require(value.elements() == elements, "an operand or result has ", value.elements(), " elements, must have ",
                 elements);
}

}  // namespace lissome
