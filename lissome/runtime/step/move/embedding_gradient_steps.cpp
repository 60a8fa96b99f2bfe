#include "lissome/runtime/step/move/embedding_gradient_steps.h"

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void bind_embedding_gradient(StepBinder& binder, const EmbeddingGradientStep& step) {
  const PlacedValue& dy = binder.value(step.dy);
  const PlacedValue& indices = binder.value(step.indices);
  const PlacedValue& table = binder.value(step.table);
  binder.require(table.sizes.size() == 2, "the table must have 2 dimensions");
  EmbeddingGradientCall call;
  call.rows = table.sizes[0], call.width = table.sizes[1], call.count = indices.elements();
  Sizes sizes = indices.sizes;
  sizes.push_back(call.width);
  binder.require_sizes(dy, sizes);
  call.padding = step.padding;
  call.fault_code = binder.fault_code();
  binder.set_call("embedding_gradient", call);
  binder.point(&EmbeddingGradientCall::dy, step.dy);
  binder.point(&EmbeddingGradientCall::indices, step.indices);
  binder.point(&EmbeddingGradientCall::y, step.table);
  binder.point_fault(&EmbeddingGradientCall::fault);
  binder.set_work(0, 4.0 * static_cast<double>(table.elements() + 2 * dy.elements()));
}

}  // namespace

std::vector<StepRow> list_embedding_gradient_steps() {
  return {declare_step<EmbeddingGradientStep, bind_embedding_gradient>()};
}

}  // namespace lissome
