// Counted dropout on our own kernel.
#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/elementwise/dropout_steps.h"

namespace lissome {

std::string refuse_dropout(const PlanBuilder& builder, const Node& node) {
  const Argument &x = node.argument("x"), &seed = node.argument("seed");
  const Dtype dtype = builder.type(node.result()).dtype;
  if (dtype != Dtype::f32 && dtype != Dtype::bf16) return "the result is " + std::string(dtype_name(dtype));
  const std::string refusal =
      first_refusal({refuse_tensor(builder, x, dtype), refuse_tensor(builder, Argument(node.result()), dtype),
                     refuse_tensor(builder, seed, Dtype::i64), refuse_number(node.argument("keep"), "keep")});
  if (!refusal.empty()) return refusal;
  if (!(read_number(node.argument("keep")) > 0)) return "nothing is kept";
  return node.argument("stream").get<int64_t>() == nullptr ? "the stream is computed" : "";
}

void emit_dropout(PlanBuilder& builder, const Node& node) {
  DropoutStep step;
  step.keep = read_number(node.argument("keep"));
  step.stream = *node.argument("stream").get<int64_t>();
  step.x = {builder.use_dense(node.argument("x"), node)};
  step.seed = {builder.use_dense(node.argument("seed"), node)};
  step.y = {builder.make(node.result())};
  builder.add_step(step, node);
}

}  // namespace lissome
