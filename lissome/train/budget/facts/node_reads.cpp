// See node_reads.h.
#include "lissome/train/budget/facts/node_reads.h"

#include <algorithm>
#include <set>

namespace lissome {
namespace {

// Whether the steps of the node read the memory of its argument. Our gradient of max pooling, for example, reads only
// the sizes of the pooled value. libtorch may read whatever it is given.
bool reads_memory(const LoweredStep& step, const NodeSteps& steps, ValueId argument) {
  if (!steps.native() || step.maker(argument) == nullptr) return true;
  return steps.reads.contains(step.root(step.planned(argument)));
}

// The values of other nodes that the arguments of a node name, in order. A value that was fused into its readers brings
// along what the node that makes it reads.
std::set<int> list_named(const Node& node, const StepModel& model, const std::vector<bool>& joined) {
  std::set<int> named;
  for (const Argument& argument : node.arguments) {
    for_each_value(argument, [&](ValueId id) {
      const auto value = static_cast<size_t>(id);
      const int producer = model.producer[value];
      if (producer < 0) return;
      named.insert(static_cast<int>(id));
      if (!joined[value]) return;
      const std::vector<int>& more = model.nodes[static_cast<size_t>(producer)].reads;
      named.insert(more.begin(), more.end());
    });
  }
  return named;
}

// Whether a second run finds what the first one found: not where a node writes in place to what it reads.
bool is_repeatable(const Program& program, const Node& node, const std::vector<bool>& written) {
  bool reads_written = false;
  for (const Argument& argument : node.arguments) {
    for_each_value(argument, [&](ValueId id) {
      reads_written = reads_written || (!written.empty() && written[static_cast<size_t>(id)]);
    });
  }
  return !reads_written && is_pure(program, node);
}

void add_step_node(const LoweredStep& step, size_t position, const std::vector<bool>& joined,
                   const std::vector<bool>& written, StepModel& model) {
  const Node& node = step.program().nodes[position];
  StepNode made;
  made.repeatable = is_repeatable(step.program(), node, written);
  for (const int value : list_named(node, model, joined)) {
    const bool reads = reads_memory(step, step.steps(position), static_cast<ValueId>(value));
    (reads ? made.reads : made.names).push_back(value);
  }
  for (const ValueId id : node.results) {
    if (id == ValueId::none) continue;
    made.results.push_back(static_cast<int>(id));
    model.producer[static_cast<size_t>(id)] = static_cast<int>(position);
  }
  model.nodes.push_back(std::move(made));
}

// Moves to `names` those reads of a fused node that no reader of its results reads. `wanted`: by fused value, the
// values that its readers read.
void keep_wanted_reads(StepNode& node, const std::vector<std::set<int>>& wanted) {
  std::vector<int> kept;
  for (const int value : node.reads) {
    const bool read = std::any_of(node.results.begin(), node.results.end(),
                                  [&](int result) { return wanted[static_cast<size_t>(result)].contains(value); });
    (read ? kept : node.names).push_back(value);
  }
  node.reads = std::move(kept);
}

// A node that was fused into its readers, and has no step of its own, needs only what they need.
void relax_joined(const LoweredStep& step, const std::vector<bool>& joined, StepModel& model) {
  std::vector<std::set<int>> wanted(step.program().values.size());
  const auto is_joined = [&](int value) { return joined[static_cast<size_t>(value)]; };
  for (size_t i = model.nodes.size(); i-- > 0;) {
    StepNode& node = model.nodes[i];
    if (!node.results.empty() && !step.steps(i).any && std::all_of(node.results.begin(), node.results.end(), is_joined))
      keep_wanted_reads(node, wanted);
    for (const int value : node.reads) {
      if (is_joined(value)) wanted[static_cast<size_t>(value)].insert(node.reads.begin(), node.reads.end());
    }
  }
}

}  // namespace

StepModel list_node_reads(const LoweredStep& step, const std::vector<bool>& joined) {
  StepModel model;
  model.producer.assign(step.program().values.size(), -1);
  const std::vector<bool> written = find_written_values(step.program());
  for (size_t i = 0; i < step.program().nodes.size(); ++i) add_step_node(step, i, joined, written, model);
  relax_joined(step, joined, model);
  return model;
}

}  // namespace lissome
