// Query, key and value projections read the same input: one wide product keeps the processor busier than three narrow
// ones and reads the input once. Siblings that feed an activation stay apart, since fusing that saves more.
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <map>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

constexpr std::array kActivations = {"aten::relu", "aten::gelu", "aten::silu", "aten::sigmoid", "aten::tanh"};

bool feeds_activation(Rewriter& rewriter, const Node& node) {
  const int reader = rewriter.only_reader(node.result());
  if (reader < 0) return false;
  const std::string& op = rewriter.node(reader).op.name();
  return std::find(kActivations.begin(), kActivations.end(), op) != kActivations.end();
}

struct Sibling {
  int position;
  at::Tensor weight, bias;  // bias may be undefined
};

std::optional<Sibling> read_sibling(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::linear") || !rewriter.program().value(node.result()).type.sized) return std::nullopt;
  const at::Tensor weight = constant_tensor(rewriter.program(), rewriter.resolve(node.argument("weight")));
  const Argument bias_argument = rewriter.resolve(node.argument("bias"));
  const at::Tensor bias = constant_tensor(rewriter.program(), bias_argument);
  if (!weight.defined() || weight.dim() != 2 || (!bias.defined() && !bias_argument.is_none())) return std::nullopt;
  if (feeds_activation(rewriter, node)) return std::nullopt;
  return Sibling{position, weight, bias};
}

bool have_one_dtype(const std::vector<Sibling>& siblings) {
  return std::all_of(siblings.begin(), siblings.end(), [&](const Sibling& sibling) {
    return sibling.weight.scalar_type() == siblings.front().weight.scalar_type() &&
           sibling.weight.size(1) == siblings.front().weight.size(1);
  });
}

void merge(Rewriter& rewriter, const std::vector<Sibling>& siblings) {
  Program& program = rewriter.program();
  const Node first = rewriter.node(siblings.front().position);
  std::vector<at::Tensor> weights, biases;
  bool any_bias = false;
  for (const Sibling& sibling : siblings) any_bias = any_bias || sibling.bias.defined();
  for (const Sibling& sibling : siblings) {
    weights.push_back(sibling.weight);
    if (any_bias) {
      biases.push_back(sibling.bias.defined() ? sibling.bias
                                              : at::zeros({sibling.weight.size(0)}, sibling.weight.options()));
    }
  }
  const std::string name = "merged." + program.value(first.result()).name;
  const at::Tensor wide = at::cat(weights, 0);
  const ValueId weight = program.add_weight(name + ".weight", wide, WeightRole::constant);
  Argument bias;
  if (any_bias) bias = program.add_weight(name + ".bias", at::cat(biases, 0), WeightRole::constant);

  ValueType type = program.value(first.result()).type;
  type.sizes.back() = Dimension(wide.size(0));
  const ValueId product = rewriter.insert_before(siblings.front().position, first.op,
                                                 {first.argument("input"), weight, bias}, {type}, first.origin);
  int64_t start = 0;
  for (const Sibling& sibling : siblings) {
    const Node node = rewriter.node(sibling.position);
    const int64_t width = sibling.weight.size(0);
    const ValueType part_type = program.value(node.result()).type;
    const ValueId part = rewriter.insert_before(siblings.front().position, Op::find("aten::slice.Tensor"),
                                                {product, -1, start, start + width, 1}, {part_type}, node.origin);
    rewriter.replace_value(node.result(), part);
    start += width;
  }
}

}  // namespace

int merge_sibling_linears(Program& program) {
  Rewriter rewriter(program);
  std::map<ValueId, std::vector<Sibling>> families;  // by input
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const std::optional<Sibling> sibling = read_sibling(rewriter, position);
    if (!sibling) continue;
    const ValueId input = rewriter.resolve(rewriter.node(position).argument("input")).value();
    families[input].push_back(*sibling);
  }
  for (const auto& [input, siblings] : families) {
    if (siblings.size() >= 2 && have_one_dtype(siblings)) merge(rewriter, siblings);
  }
  return rewriter.finish();
}

}  // namespace lissome
