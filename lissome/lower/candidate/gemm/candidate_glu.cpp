// Gated linear units: one half of x times the sigmoid of the other, both read where they lie.
#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {

std::string refuse_glu(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  const ValueType& type = builder.type(x.value());
  if (type.dtype != Dtype::f32 && type.dtype != Dtype::bf16) return "x is " + std::string(dtype_name(type.dtype));
  const std::string refusal = first_refusal(
      {refuse_tensor(builder, x, type.dtype), refuse_tensor(builder, Argument(node.result()), type.dtype)});
  if (!refusal.empty()) return refusal;
  if (type.sizes.empty() || type.sizes.size() > 5) return "it has no dimension, or more than 5";
  const int64_t dim = read_dim(node.argument("dim"), type.sizes.size());
  if (dim < 0) return "the dimension is computed";
  const auto whole = type.sizes[static_cast<size_t>(dim)].constant();
  if (!whole) return "the size of a half varies";
  const std::vector<Dimension>& half = builder.type(node.result()).sizes;
  return half.size() == type.sizes.size() && half[static_cast<size_t>(dim)] == Dimension(*whole / 2)
             ? ""
             : "its result is no half of it";
}

void emit_glu(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("self").value();
  const std::vector<Dimension> sizes = builder.type(node.result()).sizes;
  const int64_t dim = read_dim(node.argument("dim"), sizes.size());
  const Dtype dtype = builder.type(x).dtype;
  ElementwiseStep product;
  const PlanValueId whole = builder.use(x);
  for (const int64_t half : {0, 1}) {
    const int64_t start = half * *sizes[static_cast<size_t>(dim)].constant();
    const std::string name = builder.program().value(node.result()).name + (half == 0 ? ".values" : ".gates");
    const ValueId part = builder.add_value(name, dtype, std::vector<Dimension>(sizes));
    product.operands.values.push_back(
        builder.add_view({.x = {whole}, .form = "slice", .dim = dim, .start = start}, node, part));
    builder.mark_part(part, builder.memory_order(x), false);
  }
  const std::string sigmoid = std::to_string(static_cast<int>(Activation::sigmoid));
  product.program = {"load 0 0 0 0 0 0", "load 1 1 0 0 0 0", "activate 1 1 " + sigmoid + " 0 0 0",
                     "multiply 0 0 1 0 0 0"};
  product.y = {builder.make(node.result(), Storage::arena, builder.nearest_format(x))};
  builder.add_step(product, node);
}

}  // namespace lissome
