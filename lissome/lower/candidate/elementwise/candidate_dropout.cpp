// Counted dropout on our own kernel.
#include "lissome/lower/candidate/candidate_rows.h"
#include "lissome/lower/candidate/refusals.h"

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
  PlanStep step;
  step.kernel = "dropout";
  step.attributes.set("keep", read_number(node.argument("keep")));
  step.attributes.set("stream", *node.argument("stream").get<int64_t>());
  step.operands = {builder.use_dense(node.argument("x"), node), builder.use_dense(node.argument("seed"), node)};
  step.results = {builder.make(node.result())};
  builder.add_step(std::move(step), node);
}

}  // namespace lissome
