// Ops from u8 to u8 between layers in int8: average pooling and tables.
#include "lissome/lower/candidate/elementwise/elementwise_candidates.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/pool/pool_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/elementwise/lut_u8_steps.h"
#include "lissome/runtime/step/pool/average_pool_u8_steps.h"

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
  AveragePoolU8Step step;
  step.window = read_pool_window(node, 2);
  step.divisor = read_average(node, 2);
  const auto narrow = [&](const char* name) { return static_cast<float>(read_number(node.argument(name))); };
  step.x_scale = narrow("x_scale");
  step.x_zero = static_cast<int64_t>(read_number(node.argument("x_zero")));
  step.out_inverse = 1.0f / narrow("out_scale");
  step.out_zero = static_cast<int64_t>(read_number(node.argument("out_zero")));
  step.x = {builder.use_dense(node.argument("self"), node, Format::channels_last)};
  step.y = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

std::string refuse_lut_u8(const PlanBuilder& builder, const Node& node) {
  return first_refusal({refuse_tensor(builder, node.argument("self"), Dtype::u8),
                        refuse_weight(builder, node.argument("table"), Dtype::u8, 1),
                        refuse_tensor(builder, Argument(node.result()), Dtype::u8)});
}

void emit_lut_u8(PlanBuilder& builder, const Node& node) {
  const ValueId x = node.argument("self").value();
  const Format format = builder.format(x);
  LutU8Step step;
  step.x = {builder.use_dense(x, node, format)};
  step.table = {builder.use(node.argument("table"))};
  step.y = {builder.make(node.result(), Storage::arena, format)};
  builder.add_step(step, node);
}

}  // namespace lissome
