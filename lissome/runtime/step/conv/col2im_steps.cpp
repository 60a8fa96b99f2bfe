#include "lissome/runtime/step/conv/col2im_steps.h"

#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

// The sizes and the window of the call; everything checked.
void read_columns(const StepBinder& binder, const Col2ImStep& step, Col2ImCall& call) {
  const PlacedValue& x = binder.value(step.columns);
  const PlacedValue& y = binder.value(step.y);
  const size_t rank = y.sizes.size();
  binder.require((rank == 3 || rank == 4) && x.sizes.size() == rank, "values must have 3 or 4 dimensions");
  binder.require(y.sizes[1] > 0, "there are no channels");
  binder.require(x.elements() > 0 || y.elements() == 0, "there are no columns");
  Window& w = call.window;
  read_window_numbers(binder, step.window, rank - 2, w);
  require_few_phases(binder, w);
  call.channels = y.sizes[1];
  w.batch = x.sizes[0], w.width = x.sizes[rank - 2], w.out_width = y.sizes[rank - 1];
  if (rank == 4) w.height = x.sizes[1], w.out_height = y.sizes[2];
  const int64_t taps = w.kernel_height * w.kernel_width;
  binder.require_product({taps, call.channels, 4});
  binder.require(y.sizes[0] == w.batch, "batches differ");
  binder.require(x.sizes[rank - 1] == taps * call.channels, "there are ", x.sizes[rank - 1], " columns, must be ",
                 taps * call.channels);
  require_geometry(binder, step.window, w, call.channels, true, y.elements() == 0);
  if (y.elements() == 0) w.batch = 0;
}

void bind_col2im(StepBinder& binder, const Col2ImStep& step) {
  Col2ImCall call;
  read_columns(binder, step, call);
  call.epilogue = step.activation.epilogue();
  if (step.bias) binder.require_sizes(binder.value(step.bias), {call.channels});
  binder.set_call("col2im", call);
  binder.point(&Col2ImCall::columns, step.columns);
  if (step.bias) binder.point(&Col2ImCall::bias, step.bias);
  binder.point(&Col2ImCall::y, step.y);
  binder.set_work(0,
                  4.0 * static_cast<double>(binder.value(step.columns).elements() + binder.value(step.y).elements()));
}

}  // namespace

std::vector<StepRow> list_col2im_steps() { return {declare_step<Col2ImStep, bind_col2im>()}; }

}  // namespace lissome
