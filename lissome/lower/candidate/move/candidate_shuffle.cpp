// pixel_shuffle and pixel_unshuffle: the image is seen with the blocks of pixels as dimensions, reordered, copied once.
#include "lissome/lower/candidate/move/move_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {
namespace {

bool gathers_blocks(const Node& node) { return node.is("aten::pixel_unshuffle"); }
int64_t factor_of(const Node& node) {
  return *node.argument(gathers_blocks(node) ? "downscale_factor" : "upscale_factor").get<int64_t>();
}

}  // namespace

std::string refuse_shuffle(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("self");
  const ValueType& type = builder.type(x.value());
  if (builder.is_held(x.value())) return "the reference library holds the operand";
  if (item_size(type.dtype) > 8 || type.sizes.size() != 4) return "it is no batch of images";
  const Argument& factor = node.argument(gathers_blocks(node) ? "downscale_factor" : "upscale_factor");
  if (!factor.get<int64_t>()) return "the factor is computed";
  return first_refusal(
      {refuse_tensor(builder, x, type.dtype), refuse_tensor(builder, Argument(node.result()), type.dtype)});
}

void emit_shuffle(PlanBuilder& builder, const Node& node) {
  const int64_t factor = factor_of(node);
  const ValueId x = node.argument("self").value();
  const std::vector<Dimension> from = builder.type(x).sizes, to = builder.type(node.result()).sizes;
  const bool gathers = gathers_blocks(node);
  // [n, c, f, f, h, w] -> [n, c, h, f, w, f], or the other way round.
  const std::vector<Dimension>& small = gathers ? to : from;
  const Dimension& channels = gathers ? from[1] : to[1];
  const std::vector<Dimension> apart = {from[0], channels, factor, factor, small[2], small[3]},
                               woven = {from[0], channels, small[2], factor, small[3], factor};
  const std::string name = builder.program().value(node.result()).name;
  const Dtype dtype = builder.type(x).dtype;
  const ValueId split = builder.add_value(name + ".split", dtype, gathers ? woven : apart);
  const ValueId moved = builder.add_value(name + ".moved", dtype, gathers ? apart : woven);
  builder.add_view({.x = {builder.use_dense(x, node)}, .form = "reshape"}, node, split);
  ViewStep order{.x = {builder.use(split)}, .form = "permute"};
  order.dims = gathers ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 1, 4, 2, 5, 3};
  builder.add_view(order, node, moved);
  builder.mark_part(moved, {}, false);
  builder.add_view({.x = {builder.use_dense(moved, node)}, .form = "reshape"}, node, node.result());
}

}  // namespace lissome
