// See split_gradients.h.
#include "lissome/train/split_gradients.h"

#include <array>

namespace lissome {
namespace {

using Mask = std::array<bool, 3>;  // of the data, the weight, the bias

std::optional<Mask> read_mask(const Node& node) {
  if (!node.is("aten::convolution_backward")) return std::nullopt;
  const Argument& argument = node.argument("output_mask");
  if (!argument.is_list() || argument.list().size() != 3) return std::nullopt;
  Mask mask{};
  for (size_t i = 0; i < mask.size(); ++i) {
    const bool* wanted = argument.list()[i].get<bool>();
    if (wanted == nullptr) return std::nullopt;
    mask[i] = *wanted;
  }
  return mask;
}

// The node with the results of `mask` alone; the others are none.
Node take_results(Program& program, const Node& node, const Mask& mask) {
  Node part = node;
  ArgumentList wanted;
  for (size_t i = 0; i < mask.size(); ++i) {
    wanted.emplace_back(mask[i]);
    if (!mask[i]) part.results[i] = program.add_value({.kind = ValueKind::none, .sizes = {}});
  }
  part.argument("output_mask") = Argument(std::move(wanted));
  return part;
}

}  // namespace

int split_gradients(Program& program) {
  std::vector<Node> nodes;
  int split = 0;
  for (Node& node : program.nodes) {
    const std::optional<Mask> mask = read_mask(node);
    if (!mask || !(*mask)[0] || !((*mask)[1] || (*mask)[2])) {
      nodes.push_back(std::move(node));
      continue;
    }
    nodes.push_back(take_results(program, node, {false, (*mask)[1], (*mask)[2]}));
    nodes.push_back(take_results(program, node, {true, false, false}));
    ++split;
  }
  program.nodes = std::move(nodes);
  if (split > 0) verify_program(program, Stage::optimized);
  return split;
}

}  // namespace lissome
