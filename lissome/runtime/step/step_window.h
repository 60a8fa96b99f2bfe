// The window that a convolution or pooling slides over an image, from a step to a call.
#pragma once

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_groups.h"

namespace lissome {

struct WindowSizes {
  int64_t in_channels, out_channels, groups;
};
// The window of a convolution or pooling from channels-last values and attributes; everything checked.
// `x_format`: that of x; y is channels-last always. `transposed`: the window slides over y. The batch of an empty y is
// 0.
WindowSizes read_window(const StepBinder& binder, const WindowFields& fields, const PlacedValue& x,
                        const PlacedValue& y, Window& window, Format x_format = Format::channels_last,
                        bool transposed = false);
// That the window, whose numbers `fields` are, slides over the image in as many places as the other image has pixels,
// and that all it may touch can be counted; `channels` are those of both. Of empty values only the latter.
void require_geometry(const StepBinder& binder, const WindowFields& fields, const Window& window, int64_t channels,
                      bool transposed, bool empty);

// Of one axis of a transposed convolution or a data gradient: they are walked through one by one.
inline constexpr int64_t kMostPhases = 64;
void require_few_phases(const StepBinder& binder, const Window& window);

void require_winograd_window(const StepBinder& binder, const Window& window, int64_t groups);

// Its numbers alone, one for each of `spatial` dimensions.
void read_window_numbers(const StepBinder& binder, const WindowFields& fields, size_t spatial, Window& window);

}  // namespace lissome
