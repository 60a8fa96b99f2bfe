#include "lissome/runtime/step/norm/layer_norm_steps.h"

#include "lissome/runtime/step/require_elements.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

// A vector of numbers for each row, if it is there.
template <typename Call, typename T>
void point_row(StepBinder& binder, const OptionalOperand& vector, int64_t width, T* Call::* member) {
  if (!vector) return;
  require_elements(binder, binder.value(vector), width);
  binder.point(member, vector);
}

// The sum, or mean and factor; `call` has its rows and width.
void point_further_results(StepBinder& binder, const LayerNormStep& step, const LayerNormCall& call) {
  const int results = step.factor ? 3 : step.sum_or_mean ? 2 : 1;
  binder.require(step.statistics == (results == 3), results, " results with statistics = ", int{step.statistics});
  if (step.statistics) {
    require_elements(binder, binder.value(step.sum_or_mean), call.rows);
    require_elements(binder, binder.value(step.factor), call.rows);
    binder.point(&LayerNormCall::mean, step.sum_or_mean);
    binder.point(&LayerNormCall::factor, step.factor);
  } else if (step.sum_or_mean) {
    require_elements(binder, binder.value(step.sum_or_mean), call.rows * call.width);
    binder.point(&LayerNormCall::sum, step.sum_or_mean);
  }
}

void bind_layer_norm(StepBinder& binder, const LayerNormStep& step) {
  const PlacedValue& x = binder.value(step.x);
  LayerNormCall call;
  call.width = step.width;
  binder.require(x.elements() % call.width == 0, "width is ", call.width);
  call.rows = x.elements() / call.width;
  call.epsilon = static_cast<float>(step.epsilon);
  call.root_mean_square = step.root_mean_square;
  require_elements(binder, binder.value(step.y), x.elements());
  binder.set_call("layer_norm", call);
  binder.point(&LayerNormCall::x, x);
  binder.point(&LayerNormCall::y, step.y);
  if (step.residual) {
    require_elements(binder, binder.value(step.residual), x.elements());
    binder.point(&LayerNormCall::residual, step.residual);
  }
  point_row(binder, step.weight, call.width, &LayerNormCall::weight);
  point_row(binder, step.bias, call.width, &LayerNormCall::bias);
  point_further_results(binder, step, call);
  binder.set_work(0, 16.0 * static_cast<double>(x.elements()));
}

void bind_layer_norm_bf16(StepBinder& binder, const LayerNormBf16Step& step) {
  const PlacedValue& x = binder.value(step.x);
  LayerNormBf16Call call;
  call.width = step.width;
  binder.require(x.elements() % call.width == 0, quote("width"), " is ", call.width);
  call.rows = x.elements() / call.width;
  call.epsilon = static_cast<float>(step.epsilon);
  call.root_mean_square = step.root_mean_square;
  require_elements(binder, binder.value(step.y), x.elements());
  binder.set_call("layer_norm_bf16", call);
  binder.point(&LayerNormBf16Call::x, x);
  binder.point(&LayerNormBf16Call::y, step.y);
  point_row(binder, step.weight, call.width, &LayerNormBf16Call::weight);
  point_row(binder, step.bias, call.width, &LayerNormBf16Call::bias);
  binder.set_work(0, 12.0 * static_cast<double>(x.elements()));
}

}  // namespace

std::vector<StepRow> list_layer_norm_steps() {
  return {declare_step<LayerNormStep, bind_layer_norm>(), declare_step<LayerNormBf16Step, bind_layer_norm_bf16>()};
}

}  // namespace lissome
