#include "lissome/runtime/step/loss/nll_loss_steps.h"

#include "lissome/kernel.h"
#include "lissome/runtime/step/require_elements.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void require_scores(const StepBinder& binder, const PlacedValue& scores, const Sizes& sizes) {
  binder.require_sizes(scores, sizes);
  binder.require(scores.is_dense(sizes.size() == 4 ? Format::channels_last : Format::row_major),
                 "scores are not dense with their classes last");
}

// Rows of scores, or channels-last images of them, and a label for each.
template <typename Call>
void read_labelled(const StepBinder& binder, const LabelledValues& step, Call& call) {
  const PlacedValue& logarithms = binder.value(step.logarithms);
  const PlacedValue& labels = binder.value(step.labels);
  const Sizes& sizes = logarithms.sizes;
  binder.require(sizes.size() == 2 || sizes.size() == 4, "the logarithms have ", sizes.size(), " dimensions");
  require_scores(binder, logarithms, sizes);
  call.classes = sizes[1];
  Sizes of_labels = sizes;
  of_labels.erase(of_labels.begin() + 1);
  binder.require_sizes(labels, of_labels);
  call.rows = labels.elements();
  call.mean = step.mean;
  call.ignored = step.ignored;
}

void bind_nll_loss(StepBinder& binder, const NllLossStep& step) {
  NllLossCall call;
  read_labelled(binder, step, call);
  require_elements(binder, binder.value(step.loss), 1);
  require_elements(binder, binder.value(step.counted), 1);
  call.fault_code = binder.fault_code();
  binder.set_call("nll_loss", call);
  binder.point(&NllLossCall::logarithms, step.logarithms);
  binder.point(&NllLossCall::labels, step.labels);
  binder.point(&NllLossCall::loss, step.loss);
  binder.point(&NllLossCall::counted, step.counted);
  binder.point_fault(&NllLossCall::fault);
  binder.set_work(0, 0);
}

void bind_cross_entropy_gradient(StepBinder& binder, const CrossEntropyGradientStep& step) {
  CrossEntropyGradientCall call;
  read_labelled(binder, step, call);
  require_elements(binder, binder.value(step.dloss), 1);
  require_elements(binder, binder.value(step.counted), 1);
  require_scores(binder, binder.value(step.dx), binder.value(step.logarithms).sizes);
  binder.set_call("cross_entropy_gradient", call);
  binder.point(&CrossEntropyGradientCall::logarithms, step.logarithms);
  binder.point(&CrossEntropyGradientCall::labels, step.labels);
  binder.point(&CrossEntropyGradientCall::dloss, step.dloss);
  binder.point(&CrossEntropyGradientCall::counted, step.counted);
  binder.point(&CrossEntropyGradientCall::dx, step.dx);
  binder.set_work(0, 16.0 * static_cast<double>(call.rows * call.classes));
}

}  // namespace

std::vector<StepRow> list_nll_loss_steps() {
  return {declare_step<NllLossStep, bind_nll_loss>(),
          declare_step<CrossEntropyGradientStep, bind_cross_entropy_gradient>()};
}

}  // namespace lissome
