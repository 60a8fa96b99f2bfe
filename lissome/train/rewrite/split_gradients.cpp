// See split_gradients.h.
#include "lissome/train/rewrite/split_gradients.h"

#include "lissome/train/optim/gradient_mask.h"

namespace lissome {

int split_gradients(Program& program) {
  std::vector<Node> nodes;
  int split = 0;
  for (Node& node : program.nodes) {
    const std::optional<GradientMask> mask = read_gradient_mask(node);
    if (!mask || !(*mask)[0] || !((*mask)[1] || (*mask)[2])) {
      nodes.push_back(std::move(node));
      continue;
    }
    nodes.push_back(take_gradients(program, node, {false, (*mask)[1], (*mask)[2]}));
    nodes.push_back(take_gradients(program, node, {true, false, false}));
    ++split;
  }
  program.nodes = std::move(nodes);
  if (split > 0) verify_program(program, Stage::optimized);
  return split;
}

}  // namespace lissome
