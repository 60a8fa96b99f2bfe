// See gradient_mask.h.
#include "lissome/train/optim/gradient_mask.h"

namespace lissome {

std::optional<GradientMask> read_gradient_mask(const Node& node) {
  if (!node.is("aten::convolution_backward")) return std::nullopt;
  const Argument& argument = node.argument("output_mask");
  if (!argument.is_list() || argument.list().size() != 3) return std::nullopt;
  GradientMask mask{};
  for (size_t i = 0; i < mask.size(); ++i) {
    const bool* wanted = argument.list()[i].get<bool>();
    if (wanted == nullptr) return std::nullopt;
    mask[i] = *wanted;
  }
  return mask;
}

Node take_gradients(Program& program, const Node& node, const GradientMask& mask) {
  Node part = node;
  ArgumentList wanted;
  for (size_t i = 0; i < mask.size(); ++i) {
    wanted.emplace_back(mask[i]);
    if (!mask[i]) part.results[i] = program.add_value({.kind = ValueKind::none, .sizes = {}});
  }
  part.argument("output_mask") = Argument(std::move(wanted));
  return part;
}

}  // namespace lissome
