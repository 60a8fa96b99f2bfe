// Results and operands of conditions and regions; see trim_bodies.h.
#include "lissome/pass/trim_bodies.h"

#include <algorithm>

#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

constexpr size_t kFirstOperand = 1;  // behind the condition or the region's mode

// The elements whose index is not marked.
template <typename Item>
void drop_marked(std::vector<Item>& items, const std::vector<bool>& marked) {
  std::vector<Item> kept;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i >= marked.size() || !marked[i]) kept.push_back(std::move(items[i]));
  }
  items = std::move(kept);
}

bool reads(const Program& program, ValueId value) {
  bool found = false;
  const auto look = [&](const Argument& argument) {
    for_each_value(argument, [&](ValueId read) { found |= read == value; });
  };
  for (const Node& node : program.nodes) std::for_each(node.arguments.begin(), node.arguments.end(), look);
  for (const ProgramOutput& output : program.outputs) look(output.value);
  return found;
}

void drop_results(Node& node, const std::vector<bool>& unread) {
  drop_marked(node.results, unread);
  for (auto& body : node.bodies) {
    Program changed = *body;
    drop_marked(changed.outputs, unread);
    remove_dead_nodes(changed);
    body = std::make_shared<const Program>(std::move(changed));
  }
}

int drop_operands(Node& node) {
  std::vector<bool> unread;
  for (size_t i = 0; i < node.bodies.front()->inputs.size(); ++i) {
    unread.push_back(std::none_of(node.bodies.begin(), node.bodies.end(),
                                  [&](const auto& body) { return reads(*body, body->inputs.at(i).value); }));
  }
  const auto count = std::count(unread.begin(), unread.end(), true);
  if (count == 0) return 0;
  for (auto& body : node.bodies) {
    Program changed = *body;
    drop_marked(changed.inputs, unread);
    body = std::make_shared<const Program>(std::move(changed));
  }
  unread.insert(unread.begin(), kFirstOperand, false);
  drop_marked(node.arguments, unread);
  return static_cast<int>(count);
}

}  // namespace

int trim_bodies(Node& node, const std::function<bool(ValueId)>& needed) {
  if (node.op.control() != Control::cond && node.op.control() != Control::region) return 0;
  // A vmapped region's mode tells the batch dimension of each operand and result.
  const auto* mode = node.arguments.at(0).get<std::string>();
  if (mode != nullptr && mode->starts_with("vmap=")) return 0;
  std::vector<bool> unread;
  for (const ValueId result : node.results) unread.push_back(result == ValueId::none || !needed(result));
  const auto count = std::count(unread.begin(), unread.end(), true);
  const bool drops = count > 0 && count < std::ssize(unread);
  if (drops) drop_results(node, unread);
  return drop_operands(node) + (drops ? static_cast<int>(count) : 0);
}

}  // namespace lissome
