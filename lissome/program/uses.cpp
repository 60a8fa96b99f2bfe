// Facts about who reads what, computed from the node list and thrown away after a change.
#include "lissome/program.h"

namespace lissome {

Uses find_uses(const Program& program) {
  Uses uses;
  uses.by_value.resize(program.values.size());
  uses.producer.assign(program.values.size(), -1);
  const int end = static_cast<int>(program.nodes.size());
  for (int position = 0; position < end; ++position) {
    const Node& node = program.nodes[static_cast<size_t>(position)];
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      for_each_value(node.arguments[i], [&](ValueId id) {
        uses.by_value.at(static_cast<size_t>(id)).emplace_back(position, static_cast<int>(i));
      });
    }
    for (const ValueId result : node.results) {
      if (result != ValueId::none) uses.producer.at(static_cast<size_t>(result)) = position;
    }
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    for_each_value(program.outputs[i].value, [&](ValueId id) {
      uses.by_value.at(static_cast<size_t>(id)).emplace_back(end, static_cast<int>(i));
    });
  }
  for (size_t i = 0; i < program.writes.size(); ++i) {
    const int place = static_cast<int>(program.outputs.size() + i);
    uses.by_value.at(static_cast<size_t>(program.writes[i].value)).emplace_back(end, place);
    uses.by_value.at(static_cast<size_t>(program.writes[i].target)).emplace_back(end, place);
  }
  return uses;
}

std::vector<int> find_last_uses(const Program& program) {
  const Uses uses = find_uses(program);
  std::vector<int> last(program.values.size(), -1);
  for (size_t id = 0; id < last.size(); ++id) {
    // Uses are listed in node order.
    if (!uses.by_value[id].empty()) last[id] = uses.by_value[id].back().first;
  }
  return last;
}

}  // namespace lissome
