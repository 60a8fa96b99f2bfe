// A 1x1 convolution whose image is a single pixel is a linear, and a linear has the better kernels; on larger images
// the convolution stays, since channels-last makes it the same product without moving anything.
#include <algorithm>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

bool all_equal(const Argument& list, int64_t number) {
  const auto items = literal_ints(list);
  return items && std::all_of(items->begin(), items->end(), [&](int64_t item) { return item == number; });
}

bool is_pointwise(Rewriter& rewriter, const Node& node) {
  if (!node.is("aten::convolution") || node.argument("transposed") != Argument(false)) return false;
  if (node.argument("groups") != Argument(1)) return false;
  const at::Tensor weight = constant_tensor(rewriter.program(), rewriter.resolve(node.argument("weight")));
  if (!weight.defined() || weight.dim() < 3) return false;
  for (int64_t i = 2; i < weight.dim(); ++i) {
    if (weight.size(i) != 1) return false;
  }
  return all_equal(node.argument("padding"), 0);
}

// [N, C, 1, 1] or [N, C, 1]: one pixel.
bool has_one_pixel(const ValueType& type) {
  if (!type.sized || type.sizes.size() < 3) return false;
  return std::all_of(type.sizes.begin() + 2, type.sizes.end(), [](const Dimension& d) { return d == Dimension(1); });
}

}  // namespace

int convert_pointwise_conv(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node node = rewriter.node(position);
    if (!is_pointwise(rewriter, node)) continue;
    const Argument input = rewriter.resolve(node.argument("input"));
    const ValueType before = program.value(input.value()).type;
    const ValueType after = program.value(node.result()).type;
    if (!has_one_pixel(before) || !has_one_pixel(after)) continue;
    const at::Tensor weight = constant_tensor(program, rewriter.resolve(node.argument("weight")));
    const ValueId flat_weight = program.add_weight("linear." + program.value(node.result()).name + ".weight",
                                                   weight.reshape({weight.size(0), weight.size(1)}).contiguous(),
                                                   WeightRole::constant);
    const ArgumentList flat = {-1, weight.size(1)};
    const ValueId rows = rewriter.insert_before(position, Op::find("aten::reshape"), {input, flat},
                                                {tensor_type(before.dtype, {before.sizes[0], weight.size(1)})}, node.origin);
    const ValueId product =
        rewriter.insert_before(position, Op::find("aten::linear"), {rows, flat_weight, node.argument("bias")},
                               {tensor_type(after.dtype, {after.sizes[0], weight.size(0)})}, node.origin);
    ArgumentList shape = {-1, weight.size(0)};
    shape.resize(after.sizes.size(), Argument(1));
    rewriter.replace_node(position, Op::find("aten::reshape"), {product, shape});
  }
  return rewriter.finish();
}

}  // namespace lissome
