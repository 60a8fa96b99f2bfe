// The windows of steps that pack the weight of a convolution or give its gradients.
#pragma once

#include "lissome/runtime/step/step_window.h"

namespace lissome {

// That there are pixels, and few phases.
void require_gradient_window(const StepBinder& binder, const Window& window);

// The sizes of a weight of rank 3 or 4 that fits the window, with its first two.
Sizes list_weight_sizes(int64_t first, int64_t second, const Window& window, size_t rank);

// The numbers of the window of a step that packs this weight, whose sizes must fit them.
void read_packed_window(const StepBinder& binder, const WindowFields& fields, const PlacedValue& weight,
                        Window& window);

}  // namespace lissome
