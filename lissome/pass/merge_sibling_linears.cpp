// Query, key and value projections read the same input: one wide product keeps the processor busier than three narrow
// ones and reads the input once. Siblings that feed an activation stay apart, since fusing that saves more.
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>

#include "lissome/pass/passes.h"
#include "lissome/pass/read_activation.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// Siblings further apart than this keep their results alive for long: the keys and values that every layer of a decoder
// computes from the encoder's output.
constexpr int kFarthest = 64;  // nodes

// An activation or a residual that will be applied on the way out.
bool feeds_fusion(Rewriter& rewriter, const Node& node) {
  const int reader = rewriter.only_reader(node.result());
  if (reader < 0) return false;
  const Node& next = rewriter.node(reader);
  if (!read_activation(rewriter, next).empty()) return true;
  return next.is("aten::add.Tensor") && rewriter.type_of(next.arguments[0]) == rewriter.type_of(next.arguments[1]);
}

struct Sibling {
  int position;
  at::Tensor weight, bias;  // bias may be undefined
};

std::optional<Sibling> read_sibling(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::linear") || !is_sized_float(rewriter.type_of(node.result()))) return std::nullopt;
  const at::Tensor weight = constant_tensor(rewriter, rewriter.resolve(node.argument("weight")));
  const Argument bias_argument = rewriter.resolve(node.argument("bias"));
  const at::Tensor bias = constant_tensor(rewriter, bias_argument);
  if (!weight.defined() || weight.dim() != 2 || (!bias.defined() && !bias_argument.is_none())) return std::nullopt;
  // A weight that others read would be kept twice.
  if (rewriter.use_count(rewriter.resolve(node.argument("weight")).value()) > 1) return std::nullopt;
  if (feeds_fusion(rewriter, node)) return std::nullopt;
  return Sibling{position, weight, bias};
}

bool fit_together(const Sibling& left, const Sibling& right) {
  return left.weight.scalar_type() == right.weight.scalar_type() && right.position - left.position <= kFarthest;
}

void merge(Rewriter& rewriter, const std::vector<Sibling>& siblings) {
  Program& program = rewriter.program();
  const Node first = rewriter.node(siblings.front().position);
  std::vector<at::Tensor> weights, biases;
  bool any_bias = false;
  for (const Sibling& sibling : siblings) any_bias = any_bias || sibling.bias.defined();
  for (const Sibling& sibling : siblings) {
    weights.push_back(sibling.weight);
    if (!any_bias) continue;
    biases.push_back(sibling.bias.defined() ? sibling.bias
                                            : at::zeros({sibling.weight.size(0)}, sibling.weight.options()));
  }
  const std::string name = "merged." + program.value(first.result()).name;
  const at::Tensor wide = at::cat(weights, 0);
  const ValueId weight = add_constant(program, name + ".weight", wide);
  Argument bias;
  if (any_bias) bias = add_constant(program, name + ".bias", at::cat(biases, 0));

  ValueType type = program.value(first.result()).type;
  type.sizes.back() = Dimension(wide.size(0));
  const ValueId product = rewriter.insert_before(siblings.front().position, first.op,
                                                 {first.argument("input"), weight, bias}, {type}, first.origin);
  int64_t start = 0;
  for (const Sibling& sibling : siblings) {
    const Node node = rewriter.node(sibling.position);
    const int64_t width = sibling.weight.size(0);
    const ValueType part_type = rewriter.type_of(node.result());
    const ValueId part = rewriter.insert_before(siblings.front().position, Op::find("aten::slice.Tensor"),
                                                {product, -1, start, start + width, 1}, {part_type}, node.origin);
    rewriter.replace_value(node.result(), part);
    start += width;
  }
}

}  // namespace

int merge_sibling_linears(Program& program) {
  Rewriter rewriter(program);
  std::vector<std::vector<Sibling>> families;
  std::map<ValueId, size_t> latest;  // the last family of an input
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const std::optional<Sibling> sibling = read_sibling(rewriter, position);
    if (!sibling) continue;
    const ValueId input = rewriter.resolve(rewriter.node(position).argument("input")).value();
    const auto found = latest.find(input);
    if (found != latest.end() && fit_together(families[found->second].back(), *sibling)) {
      families[found->second].push_back(*sibling);
    } else {
      latest[input] = families.size();
      families.push_back({*sibling});
    }
  }
  for (const std::vector<Sibling>& siblings : families) {
    if (siblings.size() >= 2) merge(rewriter, siblings);
  }
  return rewriter.finish();
}

}  // namespace lissome
