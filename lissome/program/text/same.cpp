// Equality of programs: walks both in step and pairs their values, so that ids need not agree. Names, types, literals,
// child programs, writes, call tree and ranges of dimensions count; tensors count by dtype and sizes; where a node
// comes from does not.
#include <algorithm>
#include <unordered_map>

#include "lissome/program.h"
#include "lissome/program/text/text_words.h"

namespace lissome {
namespace {

bool same_type(const ValueType& left, const ValueType& right) {
  if (left.kind != right.kind || left.sized != right.sized || (left.sized && left.sizes != right.sizes)) return false;
  return left.kind != ValueKind::tensor || left.dtype == right.dtype;
}

// Names used in inputs are dimensions whether declared or not; then their range is open.
std::map<std::string, std::pair<int64_t, int64_t>> list_ranges(const Program& program) {
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;
  for (const NamedDimension& dimension : program.dimensions) {
    ranges.emplace(dimension.name, std::pair(dimension.minimum, dimension.maximum));
  }
  for (const ProgramInput& input : program.inputs) {
    for (const Dimension& size : program.value(input.value).type.sizes) {
      for (const std::string& name : size.names()) {
        ranges.emplace(name, std::pair(NamedDimension{}.minimum, NamedDimension{}.maximum));
      }
    }
  }
  return ranges;
}

class ProgramComparison {
 public:
  ProgramComparison(const Program& left, const Program& right, bool is_body)
      : left_(left), right_(right), is_body_(is_body) {}

  bool run() {
    return left_.training == right_.training && left_.call_tree.inputs == right_.call_tree.inputs &&
           left_.call_tree.outputs == right_.call_tree.outputs && same_dimensions() && same_requirements() &&
           pair_inputs() && pair_weights() &&
           std::equal(left_.nodes.begin(), left_.nodes.end(), right_.nodes.begin(), right_.nodes.end(),
                      [this](const Node& a, const Node& b) { return pair_nodes(a, b); }) &&
           same_writes() && same_outputs();
  }

 private:
  bool same_requirements() const {
    return std::ranges::equal(left_.requirements, right_.requirements,
                              [](const SizeRequirement& a, const SizeRequirement& b) { return a.slack == b.slack; });
  }
  bool same_dimensions() const {
    if (!is_body_) return list_ranges(left_) == list_ranges(right_);
    return std::equal(left_.dimensions.begin(), left_.dimensions.end(), right_.dimensions.begin(),
                      right_.dimensions.end(), [](const NamedDimension& a, const NamedDimension& b) {
                        return a.name == b.name && a.minimum == b.minimum && a.maximum == b.maximum;
                      });
  }

  bool pair_values(ValueId left, ValueId right, bool named) {
    if (left == ValueId::none || right == ValueId::none) return left == right;
    pairs_.insert_or_assign(left, right);
    const Value& a = left_.value(left);
    const Value& b = right_.value(right);
    return !named || (a.name == b.name && same_type(a.type, b.type));
  }

  bool pair_inputs() {
    return std::equal(left_.inputs.begin(), left_.inputs.end(), right_.inputs.begin(), right_.inputs.end(),
                      [this](const ProgramInput& a, const ProgramInput& b) {
                        return a.name == b.name && pair_values(a.value, b.value, true);
                      });
  }

  bool pair_weights() {
    return std::equal(left_.weights.begin(), left_.weights.end(), right_.weights.begin(), right_.weights.end(),
                      [this](const Weight& a, const Weight& b) {
                        return a.name == b.name && a.role == b.role && a.trains == b.trains &&
                               a.persistent == b.persistent && pair_values(a.value, b.value, false) &&
                               a.tensor.defined() == b.tensor.defined() &&
                               (!a.tensor.defined() ||
                                (a.tensor.scalar_type() == b.tensor.scalar_type() &&
                                 a.tensor.layout() == b.tensor.layout() && a.tensor.sizes() == b.tensor.sizes()));
                      });
  }

  bool pair_nodes(const Node& left, const Node& right) {
    return left.op == right.op &&
           std::equal(left.arguments.begin(), left.arguments.end(), right.arguments.begin(), right.arguments.end(),
                      [this](const Argument& a, const Argument& b) { return same_argument(a, b); }) &&
           std::equal(left.bodies.begin(), left.bodies.end(), right.bodies.begin(), right.bodies.end(),
                      [](const auto& a, const auto& b) { return a && b && ProgramComparison(*a, *b, true).run(); }) &&
           std::equal(left.results.begin(), left.results.end(), right.results.begin(), right.results.end(),
                      [this](ValueId a, ValueId b) { return pair_values(a, b, true); });
  }

  bool same_value(ValueId left, ValueId right) const {
    if (left == ValueId::none || right == ValueId::none) return left == right;
    const auto found = pairs_.find(left);
    return found != pairs_.end() && found->second == right;
  }

  bool same_argument(const Argument& left, const Argument& right) const {
    if (left.is_value() && right.is_value()) return same_value(left.value(), right.value());
    if (!left.is_list() || !right.is_list()) return same_literal(left, right);
    return std::equal(left.list().begin(), left.list().end(), right.list().begin(), right.list().end(),
                      [this](const Argument& a, const Argument& b) { return same_argument(a, b); });
  }

  bool same_writes() const {
    return std::equal(left_.writes.begin(), left_.writes.end(), right_.writes.begin(), right_.writes.end(),
                      [this](const StateWrite& a, const StateWrite& b) {
                        return same_value(a.target, b.target) && same_value(a.value, b.value);
                      });
  }

  bool same_outputs() const {
    return std::equal(left_.outputs.begin(), left_.outputs.end(), right_.outputs.begin(), right_.outputs.end(),
                      [this](const ProgramOutput& a, const ProgramOutput& b) {
                        return a.name == b.name && same_argument(a.value, b.value);
                      });
  }

  const Program& left_;
  const Program& right_;
  const bool is_body_;
  std::unordered_map<ValueId, ValueId> pairs_;
};

}  // namespace

bool same_program(const Program& left, const Program& right) { return ProgramComparison(left, right, false).run(); }

}  // namespace lissome
