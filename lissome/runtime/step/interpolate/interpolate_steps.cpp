#include "lissome/runtime/step/interpolate/interpolate_steps.h"

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

constexpr double kLargestPlace = int64_t{1} << 62;

template <typename Call>
void bind_interpolate_of(StepBinder& binder, const InterpolateValues& step, std::string_view kernel) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require(x.sizes.size() == 4 && y.sizes.size() == 4, "values must have 4 dimensions");
  Call call;
  call.batch = x.sizes[0], call.channels = x.sizes[1], call.height = x.sizes[2], call.width = x.sizes[3];
  call.out_height = y.sizes[2], call.out_width = y.sizes[3];
  binder.require_sizes(y, {call.batch, call.channels, call.out_height, call.out_width});
  binder.require(y.elements() == 0 || (call.height > 0 && call.width > 0), "x is empty");
  call.bilinear = step.bilinear;
  call.aligned_corners = step.aligned_corners;
  const auto find_scale = [&](const char* name, double given, int64_t inputs, int64_t outputs) {
    if (call.aligned_corners)
      return outputs > 1 ? static_cast<float>(inputs - 1) / static_cast<float>(outputs - 1) : 0.0f;
    // Places in x are counted in 64 bits before they are cut to its size.
    binder.require(given * static_cast<double>(outputs) < kLargestPlace, name, " is ", given, " for ", outputs);
    if (given > 0) return static_cast<float>(given);
    return outputs > 0 ? static_cast<float>(inputs) / static_cast<float>(outputs) : 1.0f;
  };
  call.scale_height = find_scale("scale_height", step.scale_height, call.height, call.out_height);
  call.scale_width = find_scale("scale_width", step.scale_width, call.width, call.out_width);
  binder.set_call(kernel, call);
  binder.point(&Call::x, step.x);
  binder.point(&Call::y, step.y);
  binder.set_work((call.bilinear ? 12.0 : 2.0) * static_cast<double>(y.elements()),
                  static_cast<double>((x.elements() + y.elements()) * item_size(x.dtype)));
}

void bind_interpolate(StepBinder& binder, const InterpolateStep& step) {
  bind_interpolate_of<InterpolateCall>(binder, step, "interpolate");
}
void bind_interpolate_bf16(StepBinder& binder, const InterpolateBf16Step& step) {
  bind_interpolate_of<InterpolateBf16Call>(binder, step, "interpolate_bf16");
}

}  // namespace

std::vector<StepRow> list_interpolate_steps() {
  return {declare_step<InterpolateStep, bind_interpolate>(),
          declare_step<InterpolateBf16Step, bind_interpolate_bf16>()};
}

}  // namespace lissome
