// Sigmoid and SiLU (x sigmoid(x)) as people write them out, and as the decomposed dialect spells the latter.
#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

// 1 + exp(-x): x.
std::optional<ValueId> match_denominator(Rewriter& rewriter, const Argument& argument) {
  const auto offset = match_offset(rewriter, argument);
  if (!offset || offset->number != 1) return std::nullopt;
  const Node* exponential = rewriter.producer(Argument(offset->value), "aten::exp");
  if (exponential == nullptr) return std::nullopt;
  const Argument inner = rewriter.resolve(exponential->argument("self"));
  if (const Node* negation = rewriter.producer(inner, "aten::neg")) {
    return rewriter.resolve(negation->argument("self")).value();
  }
  const auto scaled = match_scale(rewriter, inner);
  return scaled && scaled->number == -1 ? std::optional(scaled->value) : std::nullopt;
}

// 1 / (1 + exp(-x)) -> sigmoid(x).
bool fuse_sigmoid(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::reciprocal") || !is_sized_float(rewriter.type_of(node.result()))) return false;
  const auto x = match_denominator(rewriter, rewriter.resolve(node.argument("self")));
  if (!x || !is_closed(rewriter, node, {*x})) return false;
  rewriter.replace_node(position, Op::find("aten::sigmoid"), {*x});
  return true;
}

// x / (1 + exp(-x)) -> silu(x).
bool fuse_silu_quotient(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::div.Tensor") || !is_sized_float(rewriter.type_of(node.result()))) return false;
  const auto x = match_denominator(rewriter, rewriter.resolve(node.argument("other")));
  if (!x || rewriter.resolve(node.argument("self")) != Argument(*x) || !is_closed(rewriter, node, {*x})) return false;
  rewriter.replace_node(position, Op::find("aten::silu"), {*x});
  return true;
}

// x * sigmoid(x) -> silu(x).
bool fuse_gated_product(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  const auto product = match_product(rewriter, Argument(node.result()));
  if (!product || !is_sized_float(rewriter.type_of(node.result()))) return false;
  for (const auto& [x, gate] : {*product, std::pair{product->second, product->first}}) {
    const Node* sigmoid = rewriter.producer(Argument(gate), "aten::sigmoid");
    if (sigmoid == nullptr || !rewriter.has_one_use(gate) || !is_sized_float(rewriter.type_of(x))) continue;
    if (rewriter.resolve(sigmoid->argument("self")) != Argument(x)) continue;
    rewriter.replace_node(position, Op::find("aten::silu"), {x});
    return true;
  }
  return false;
}

}  // namespace

int fuse_silu(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (node.results.size() != 1 || node.result() == ValueId::none) continue;
    fuse_sigmoid(rewriter, position) || fuse_silu_quotient(rewriter, position) ||
        fuse_gated_product(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
