#include <set>

#include "lissome/lower/plan/plan_builder.h"

namespace lissome {
namespace {

// Copies nodes into a program of their own, values renumbered, names kept.
class GroupMaker {
 public:
  GroupMaker(const Program& program, const std::function<bool(ValueId)>& leaves,
             const std::function<bool(ValueId)>& is_constant)
      : from_(program), leaves_(leaves), is_constant_(is_constant) {
    to_.dimensions = program.dimensions;
    to_.training = program.training;
  }

  ReferenceGroup make(std::span<const KeptNode> nodes) {
    for (const KeptNode& kept : nodes) collect(kept.node);
    for (const KeptNode& kept : nodes) add(kept.node);
    for (const auto& [node, program_node] : nodes) {
      for (const ValueId id : node.results) {
        if (id == ValueId::none || !leaves_(id)) continue;
        group_.results.push_back(id);
        to_.outputs.push_back({Argument(ids_.at(id)), "output." + std::to_string(to_.outputs.size())});
      }
      group_.keeps_operands = group_.keeps_operands || find_effects(from_, node).may_alias || !node.bodies.empty();
      group_.origins.push_back(PlanBuilder::describe_origin(from_, node, program_node));
    }
    group_.program = print_program(to_);
    for (auto& [name, tensor] : list_weights_by_scope(to_)) {
      if (to_.find_weight(name) == nullptr) group_.body_weights.emplace_back(name, tensor);
    }
    return std::move(group_);
  }

 private:
  // Inputs and weights come first in a program, so they are found before any node is copied.
  void collect(const Node& node) {
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id) {
        if (made_.contains(id) || ids_.contains(id)) return;
        const Value& value = from_.value(id);
        const Weight* weight = from_.find_weight(id);
        if (weight && is_constant_(id)) {
          ids_[id] = to_.add_weight(weight->name, weight->tensor, weight->role);
          return;
        }
        group_.operands.push_back(id);
        ids_[id] = to_.add_input(weight ? "state." + value.name : value.name, value.type);
      });
    }
    for (const ValueId id : node.results) made_.insert(id);
  }

  void add(const Node& node) {
    Node copied = node;
    for (Argument& argument : copied.arguments) {
      argument = map_values(argument, [&](ValueId id) { return id == ValueId::none ? id : ids_.at(id); });
    }
    for (ValueId& id : copied.results) {
      if (id == ValueId::none) continue;
      const Value& value = from_.value(id);
      ids_[id] = to_.add_value(value.type, value.name);
      id = ids_[id];
    }
    for (auto& body : copied.bodies) body = rename_weights(*body, name_control(node) + ".");
    to_.nodes.push_back(std::move(copied));
  }

  // Unique in the program, as names of values are.
  std::string name_control(const Node& node) const {
    for (const ValueId id : node.results) {
      if (id != ValueId::none) return from_.value(id).name;
    }
    return {};
  }

  // The plan names weights of all its groups, and those of bodies by indices that count from the group's first node.
  static std::shared_ptr<const Program> rename_weights(const Program& body, const std::string& prefix) {
    auto renamed = std::make_shared<Program>(body);
    for (Weight& weight : renamed->weights) weight.name = prefix + weight.name;
    for (Node& node : renamed->nodes) {
      for (auto& inner : node.bodies) inner = rename_weights(*inner, prefix);
    }
    return renamed;
  }

  const Program& from_;
  const std::function<bool(ValueId)>& leaves_;
  const std::function<bool(ValueId)>& is_constant_;
  Program to_;
  ReferenceGroup group_;
  std::unordered_map<ValueId, ValueId> ids_;
  std::set<ValueId> made_;
};

}  // namespace

ReferenceGroup make_reference_group(const Program& program, std::span<const KeptNode> nodes,
                                    const std::function<bool(ValueId)>& leaves,
                                    const std::function<bool(ValueId)>& is_constant) {
  return GroupMaker(program, leaves, is_constant).make(nodes);
}

}  // namespace lissome
