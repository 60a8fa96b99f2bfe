// Ops from u8 to u8 between layers in int8: average pooling and tables.
#include "lissome/lower/candidate/candidate_rows.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/refusals.h"

namespace lissome {

std::string refuse_average_u8(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  std::string refusal =
      first_refusal({refuse_tensor(builder, x, Dtype::u8), refuse_tensor(builder, Argument(node.result()), Dtype::u8)});
  for (const char* name : {"x_scale", "x_zero", "out_scale", "out_zero"}) {
    if (refusal.empty()) refusal = refuse_number(node.argument(name), name);
  }
  if (!refusal.empty()) return refusal;
  if (builder.type(x.value()).sizes.size() != 4) return "x has no batch";
  for (const char* name : {"kernel_size", "stride", "padding"}) {
    if (!read_integers(node.argument(name))) return std::string(name) + " is computed";
  }
  const std::vector<int64_t> kernel = spread(*read_integers(node.argument("kernel_size")), 2);
  if (kernel[0] * kernel[1] > kAveragedBytes) return "its window is too large for exact sums";
  if (!node.argument("count_include_pad").get<bool>()) return "count_include_pad is computed";
  const Argument& divisor = node.argument("divisor_override");
  return divisor.is_none() || divisor.get<int64_t>() ? "" : "the divisor is computed";
}

void emit_average_u8(PlanBuilder& builder, const Node& node) {
  PlanStep step;
  step.kernel = "average_pool_u8";
  set_pool_window(step, node, 2);
  set_average(step, node, 2);
  const auto narrow = [&](const char* name) { return static_cast<float>(read_number(node.argument(name))); };
  step.attributes.set("x_scale", static_cast<double>(narrow("x_scale")));
  step.attributes.set("x_zero", static_cast<int64_t>(read_number(node.argument("x_zero"))));
  step.attributes.set("out_inverse", static_cast<double>(1.0f / narrow("out_scale")));
  step.attributes.set("out_zero", static_cast<int64_t>(read_number(node.argument("out_zero"))));
  step.operands = {builder.use_dense(node.argument("self"), node, Format::channels_last)};
  step.results = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(std::move(step), node);
}

std::string refuse_lut_u8(const PlanBuilder& builder, const Node& node) {
  return first_refusal({refuse_tensor(builder, node.argument("self"), Dtype::u8),
                        refuse_weight(builder, node.argument("table"), Dtype::u8, 1),
                        refuse_tensor(builder, Argument(node.result()), Dtype::u8)});
}

void emit_lut_u8(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("self").value();
  const Format format = builder.format(x);
  PlanStep step;
  step.kernel = "lut_u8";
  step.operands = {builder.use_dense(x, node, format), builder.use(node.argument("table"))};
  step.results = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(std::move(step), node);
}

}  // namespace lissome
