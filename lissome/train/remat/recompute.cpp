// See recompute.h.
#include "lissome/train/remat/recompute.h"

namespace lissome {

Program apply_schedule(const Program& program, const RunOrder& schedule) {
  Program made = program;
  made.nodes.clear();
  std::vector<ValueId> latest(program.values.size());
  for (size_t i = 0; i < latest.size(); ++i) latest[i] = ValueId{static_cast<int32_t>(i)};
  const auto find_latest = [&](ValueId id) { return id == ValueId::none ? id : latest[static_cast<size_t>(id)]; };
  std::vector<bool> ran(program.nodes.size(), false);
  for (const int position : schedule) {
    const auto at = static_cast<size_t>(position);
    Node node = program.nodes[at];
    for (Argument& argument : node.arguments) argument = map_values(argument, find_latest);
    if (ran[at]) {
      for (ValueId& id : node.results) {
        if (id == ValueId::none) continue;
        const Value& value = program.value(id);
        const ValueId repeated = made.add_value(value.type, value.name);
        latest[static_cast<size_t>(id)] = repeated;
        id = repeated;
      }
    }
    ran[at] = true;
    made.nodes.push_back(std::move(node));
  }
  for (ProgramOutput& output : made.outputs) output.value = map_values(output.value, find_latest);
  for (StateWrite& write : made.writes) write.value = find_latest(write.value);
  verify_program(made, Stage::imported);
  return made;
}

}  // namespace lissome
