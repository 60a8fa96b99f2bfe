// Batch norm in eval form that no weights took in: x * factor + offset per channel, which joins element-wise chains.
#include "lissome/pass/channel_affine.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

bool convert_norm(Rewriter& rewriter, int position) {
  const Node& norm = rewriter.node(position);
  const std::optional<ChannelAffine> affine = read_batch_norm(rewriter, norm);
  if (!affine) return false;
  const Argument input = rewriter.resolve(norm.argument("input"));
  const ValueType& type = rewriter.type_of(input);
  // Halves would be rounded between the product and the sum.
  if (!type.sized || type.dtype != Dtype::f32 || type.sizes.size() < 2) return false;
  std::vector<int64_t> shape(type.sizes.size() - 1, 1);
  shape[0] = -1;
  const at::Tensor factor = affine->factor.to(at::kFloat).reshape(shape),
                   offset = affine->offset.to(at::kFloat).reshape(shape);
  if (!is_finite_weight(factor) || !is_finite_weight(offset)) return false;
  Program& program = rewriter.program();
  const std::string name = name_of_weight(program, rewriter.resolve(norm.argument("running_mean")));
  const Argument scale = add_constant(program, name + ".factor", factor),
                 shift = add_constant(program, name + ".offset", offset);
  rewriter.replace_node(position, Op::find("aten::addcmul"), {shift, input, scale, 1});
  return true;
}

}  // namespace

int convert_batch_norm(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) convert_norm(rewriter, position);
  return rewriter.finish();
}

}  // namespace lissome
