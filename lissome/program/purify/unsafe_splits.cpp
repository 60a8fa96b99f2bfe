// See unsafe_splits.h.
#include "lissome/program/purify/unsafe_splits.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lissome/program.h"

namespace lissome {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kForms = {
    std::pair{"aten::unsafe_split.Tensor", "aten::split_copy.Tensor"},
    std::pair{"aten::unsafe_split_with_sizes", "aten::split_with_sizes_copy"}};

// Whether the value lies in memory of its own, which its one reader alone looks at.
bool is_read_once(const Program& program, const Uses& uses, ValueId value) {
  const int producer = uses.producer[static_cast<size_t>(value)];
  if (producer < 0 || uses.count(value) != 1) return false;
  const Node& node = program.nodes[static_cast<size_t>(producer)];
  return node.bodies.empty() && is_pure(program, node) && !find_effects(program, node).may_alias;
}

// Whether nodes take parts out of the list, each another one, and nothing else reads it.
bool is_taken_apart(const Program& program, const Uses& uses, ValueId list) {
  std::set<int64_t> taken;
  for (const auto& [position, argument] : uses.by_value[static_cast<size_t>(list)]) {
    if (position >= static_cast<int>(program.nodes.size())) return false;
    const Node& reader = program.nodes[static_cast<size_t>(position)];
    const int64_t* index = reader.is("lissome::getitem") ? reader.arguments[1].get<int64_t>() : nullptr;
    if (index == nullptr || *index < 0 || !taken.insert(*index).second) return false;
  }
  return true;
}

}  // namespace

std::set<ValueId> part_unsafe_splits(Program& program) {
  std::set<ValueId> parted;
  const Uses uses = find_uses(program);
  for (Node& node : program.nodes) {
    for (const auto& [view, copy] : kForms) {
      if (!node.is(view) || !node.arguments[0].is_value()) continue;
      if (!is_read_once(program, uses, node.arguments[0].value())) continue;
      if (!is_taken_apart(program, uses, node.result())) continue;
      node.op = Op::find(copy);
      parted.insert(node.result());
      break;
    }
  }
  return parted;
}

void join_unsafe_splits(Program& program, const std::set<ValueId>& parted) {
  if (parted.empty()) return;
  const std::vector<bool> written = find_written_values(program);
  for (Node& node : program.nodes) {
    for (const auto& [view, copy] : kForms) {
      if (!node.is(copy) || !parted.contains(node.result())) continue;
      const bool is_written = !written.empty() && written[static_cast<size_t>(node.result())];
      if (!is_written) node.op = Op::find(view);
    }
  }
}

}  // namespace lissome
