// RMS norm (Zhang and Sennrich 2019) written out: x * rsqrt(mean(x^2) + eps), then perhaps a weight.
#include "lissome/pass/norm/match_norm.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

bool rewrite_root_quotient(Rewriter& rewriter, int position, const RootQuotient& quotient, const Weighted& numerator) {
  const Node* mean = rewriter.producer(Argument(quotient.value), "aten::mean.dim");
  if (mean == nullptr || !mean->argument("self").is_value()) return false;
  const ValueId squares = rewriter.resolve(mean->argument("self")).value();
  const auto base = match_square(rewriter, squares);
  if (!base || !same_value(rewriter, *base, numerator.value)) return false;
  const int64_t dimensions = match_mean(rewriter, quotient.value, squares);
  const auto shape = dimensions > 0 ? find_normalized_shape(rewriter, *base, dimensions) : std::nullopt;
  if (!shape || !fits_shape(rewriter, numerator.weight, *shape)) return false;
  if (!is_closed(rewriter, rewriter.node(position), {*base})) return false;
  rewriter.replace_node(position, Op::find("aten::rms_norm"), {*base, *shape, numerator.weight, quotient.epsilon});
  return true;
}

bool rewrite_rms_norm(Rewriter& rewriter, int position) {
  for (const RootQuotient& quotient : match_root_quotient(rewriter, rewriter.node(position))) {
    for (const Weighted& numerator : match_weighted(rewriter, quotient.numerator)) {
      if (rewrite_root_quotient(rewriter, position, quotient, numerator)) return true;
    }
  }
  return false;
}

bool absorb_weight(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::mul.Tensor")) return false;
  const auto affine = match_affine(rewriter, node, "aten::rms_norm");
  if (!affine || !affine->norm.argument("weight").is_none()) return false;
  rewriter.replace_node(position, affine->norm.op,
                        {affine->norm.argument("input"), affine->norm.argument("normalized_shape"), affine->constant,
                         affine->norm.argument("eps")});
  return true;
}

}  // namespace

int fuse_rms_norm(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    absorb_weight(rewriter, position) || rewrite_rms_norm(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
