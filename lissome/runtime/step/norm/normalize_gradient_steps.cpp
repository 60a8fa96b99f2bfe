#include "lissome/runtime/step/norm/normalize_gradient_steps.h"

#include "lissome/runtime/step/norm/softmax_width.h"
#include "lissome/runtime/step/require_elements.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void bind_layer_norm_gradient(StepBinder& binder, const LayerNormGradientStep& step) {
  const PlacedValue& x = binder.value(step.x);
  LayerNormGradientCall call;
  call.width = step.width;
  binder.require(x.elements() % call.width == 0, "width is ", call.width);
  call.rows = x.elements() / call.width;
  require_elements(binder, binder.value(step.dy), x.elements());
  require_elements(binder, binder.value(step.mean), call.rows);
  require_elements(binder, binder.value(step.factor), call.rows);
  require_elements(binder, binder.value(step.dx), x.elements());
  for (const Result& sums : {step.weight_sums, step.bias_sums}) {
    binder.require_sizes(binder.value(sums), {kGradientShares, call.width});
  }
  binder.set_call("layer_norm_gradient", call);
  binder.point(&LayerNormGradientCall::dy, step.dy);
  binder.point(&LayerNormGradientCall::x, step.x);
  binder.point(&LayerNormGradientCall::mean, step.mean);
  binder.point(&LayerNormGradientCall::factor, step.factor);
  if (step.weight) {
    require_elements(binder, binder.value(step.weight), call.width);
    binder.point(&LayerNormGradientCall::weight, step.weight);
  }
  binder.point(&LayerNormGradientCall::dx, step.dx);
  binder.point(&LayerNormGradientCall::weight_sums, step.weight_sums);
  binder.point(&LayerNormGradientCall::bias_sums, step.bias_sums);
  binder.set_work(0, 24.0 * static_cast<double>(x.elements()));
}

void bind_softmax_gradient(StepBinder& binder, const SoftmaxGradientStep& step) {
  const PlacedValue& y = binder.value(step.y);
  SoftmaxGradientCall call;
  call.width = read_softmax_width(binder, step.channels, {&binder.value(step.dy), &y, &binder.value(step.dx)});
  call.rows = call.width > 0 ? y.elements() / call.width : 0;
  call.logarithm = step.logarithm;
  binder.set_call("softmax_gradient", call);
  binder.point(&SoftmaxGradientCall::dy, step.dy);
  binder.point(&SoftmaxGradientCall::y, step.y);
  binder.point(&SoftmaxGradientCall::dx, step.dx);
  binder.set_work(0, 16.0 * static_cast<double>(y.elements()));
}

}  // namespace

std::vector<StepRow> list_normalize_gradient_steps() {
  return {declare_step<LayerNormGradientStep, bind_layer_norm_gradient>(),
          declare_step<SoftmaxGradientStep, bind_softmax_gradient>()};
}

}  // namespace lissome
