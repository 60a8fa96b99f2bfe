#include "lissome/train/rewrite/mode_dependence.h"

#include <algorithm>
#include <string_view>

namespace lissome {
namespace {

// Whether the argument is there and is a probability above 0.
bool is_active(const Node& node, std::string_view argument) {
  if (node.op.argument_index(argument) < 0) return false;
  const auto* share = node.argument(argument).get<double>();
  return share != nullptr && *share > 0;
}

bool depends_on_mode(const Node& node) {
  if (std::any_of(node.bodies.begin(), node.bodies.end(),
                  [](const auto& body) { return lissome::depends_on_mode(*body); }))
    return true;
  if (!node.op.has_schema()) return false;
  const std::string& name = node.op.name();
  const auto holds = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (holds("batch_norm")) return true;
  if (holds("instance_norm")) return node.argument("running_mean").is_value();
  return holds("dropout") ? is_active(node, "p") : is_active(node, "dropout") || is_active(node, "dropout_p");
}

}  // namespace

bool depends_on_mode(const Program& program) {
  return std::any_of(program.nodes.begin(), program.nodes.end(),
                     [](const Node& node) { return depends_on_mode(node); });
}

}  // namespace lissome
