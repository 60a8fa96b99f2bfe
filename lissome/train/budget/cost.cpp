// See cost.h. Puts the parts of facts/ together.
#include "lissome/train/budget/cost.h"

#include <algorithm>

#include "lissome/train/budget/facts/node_meter.h"
#include "lissome/train/budget/facts/node_reads.h"
#include "lissome/train/budget/facts/value_placement.h"

namespace lissome {
namespace {

// Values of outputs, except those that leave early.
std::vector<int> list_leaving(const LoweredStep& step) {
  std::vector<int> leaving;
  const std::vector<ProgramOutput>& outputs = step.program().outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].value.is_value() && step.plan().outputs[i].leaves_after < 0)
      leaving.push_back(static_cast<int>(outputs[i].value.value()));
  }
  return leaving;
}

// Marks the nodes that outputs other than gradients need.
void mark_forward(const Program& program, StepModel& model) {
  std::vector<bool> needed(program.values.size(), false);
  for (const ProgramOutput& output : program.outputs) {
    if (output.value.is_value() && !output.name.starts_with("gradient."))
      needed[static_cast<size_t>(output.value.value())] = true;
  }
  for (size_t i = model.nodes.size(); i-- > 0;) {
    StepNode& node = model.nodes[i];
    node.forward = std::any_of(node.results.begin(), node.results.end(),
                               [&](int value) { return needed[static_cast<size_t>(value)]; });
    if (!node.forward) continue;
    for (const auto* values : {&node.reads, &node.names}) {
      for (const int value : *values) needed[static_cast<size_t>(value)] = true;
    }
  }
}

// Bytes of values that a step makes for a later step of the same node: packed weights, parts of a sum.
int64_t count_own_values(const PlanStep& step, const Footprint& footprint, const ValuePlacement& placed) {
  int64_t bytes = 0;
  for (const PlanValueId result : step.results) {
    const auto at = static_cast<size_t>(result);
    if (placed.owner_of_root[at] == ValueId::none) bytes += footprint.value_bytes[at];
  }
  return bytes;
}

// The step's result must be one that the node is known by, and the operands values that other nodes made.
void add_in_place(const PlanStep& step, const std::vector<PlanValueId>& operands, const ValuePlacement& placed,
                  StepNode& node) {
  for (const PlanValueId operand : operands) {
    const ValueId made = placed.owner_of_root[static_cast<size_t>(step.results[0])];
    const ValueId read = placed.owner_of_root[static_cast<size_t>(operand)];
    if (made == ValueId::none || read == ValueId::none) continue;
    const bool reads = std::any_of(node.reads.begin(), node.reads.end(), [&](int value) {
      return placed.owner[static_cast<size_t>(value)] == static_cast<int>(read);
    });
    const bool makes = std::count(node.results.begin(), node.results.end(), static_cast<int>(made)) > 0;
    if (reads && makes) node.in_place.push_back(static_cast<int>(read));
  }
}

void add_scratch(const Plan& plan, const Footprint& footprint, const ValuePlacement& placed, StepModel& model) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const int position = find_last_node(plan.steps[i]);
    if (position < 0) continue;
    StepNode& node = model.nodes[static_cast<size_t>(position)];
    node.scratch += footprint.scratch_bytes[i] + count_own_values(plan.steps[i], footprint, placed);
    add_in_place(plan.steps[i], footprint.in_place[i], placed, node);
  }
}

// A gradient that leaves early stays until the node behind which it leaves, the last reader of its weight.
void hold_early_outputs(const LoweredStep& step, StepModel& model) {
  const std::vector<ProgramOutput>& outputs = step.program().outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int after = step.plan().outputs[i].leaves_after;
    if (after < 0 || !outputs[i].value.is_value()) continue;
    const auto value = static_cast<int>(outputs[i].value.value());
    const int node = find_last_node(step.plan().steps[static_cast<size_t>(after)]);
    if (node < 0 || node <= model.producer[static_cast<size_t>(value)]) continue;
    std::vector<int>& reads = model.nodes[static_cast<size_t>(node)].reads;
    if (std::find(reads.begin(), reads.end(), value) == reads.end()) reads.push_back(value);
  }
}

// Memory into which a node writes, and the views that it writes through, are made once: a second run of the maker would
// lack what was written.
void keep_written_memory(StepModel& model) {
  for (const StepNode& node : model.nodes) {
    for (const int value : node.repeatable ? std::vector<int>() : node.results) {
      const int owner = model.owner[static_cast<size_t>(value)];
      if (owner < 0 || owner == value) continue;
      const int maker = model.producer[static_cast<size_t>(owner)];
      if (maker >= 0) model.nodes[static_cast<size_t>(maker)].repeatable = false;
    }
  }
}

StepFacts make_facts(const StepSource& source, const Footprint& footprint, const SizePrediction& sizes) {
  const LoweredStep step(source);
  ValuePlacement placed = place_values(step, footprint, sizes);
  StepFacts facts{list_node_reads(step, placed.joined), {}, {}, {}};
  StepModel& model = facts.model;
  model.leaving = list_leaving(step);
  mark_forward(step.program(), model);
  add_scratch(step.plan(), footprint, placed, model);
  hold_early_outputs(step, model);
  model.bytes = std::move(placed.bytes);
  model.owner = std::move(placed.owner);
  facts.held = std::move(placed.held);
  keep_written_memory(model);
  return facts;
}

// Bytes of the node's results that libtorch held when it was measured.
int64_t count_held(const Node& node, const std::vector<bool>& held, const SizePrediction& sizes) {
  int64_t bytes = 0;
  for (const ValueId id : node.results) {
    if (id == ValueId::none || !held[static_cast<size_t>(id)]) continue;
    bytes += sizes.count_measured(id) * item_size(sizes.measured(id).dtype);
  }
  return bytes;
}

// What a step of ours reads of libtorch may be copied: at::Tensor::copy_() of a transposed matrix goes through a block
// of this size from 60 times 60 elements on, which a run on a small batch need not show.
constexpr int64_t kBlock = 60 * 60 * sizeof(float);

}  // namespace

StepFacts describe_step(const StepSource& source, const std::vector<at::Tensor>& examples,
                        const std::vector<Sizes>& sizes) {
  LISSOME_CHECK(examples.size() == source.program->inputs.size() && sizes.size() == examples.size());
  const Footprint footprint = find_footprint(*source.plan, sizes, source.threads);
  return make_facts(source, footprint, SizePrediction(*source.program, examples, sizes));
}

StepFacts measure_step(const StepSource& source, const std::vector<at::Tensor>& measured,
                       const std::vector<Sizes>& sizes) {
  LISSOME_CHECK(measured.size() == source.program->inputs.size() && sizes.size() == measured.size());
  const Footprint footprint = find_footprint(*source.plan, sizes, source.threads);
  const SizePrediction prediction(*source.program, measured, sizes);
  StepFacts facts = make_facts(source, footprint, prediction);
  const NodeCosts costs = measure_nodes(source, measured);
  for (size_t i = 0; i < facts.model.nodes.size(); ++i) {
    const Node& node = source.program->nodes[i];
    const double scale = facts.scales.emplace_back(prediction.scale(node));
    facts.model.nodes[i].seconds = costs.seconds[i] * scale;
    const int64_t held = count_held(node, facts.held, prediction);
    const int64_t extra = std::max<int64_t>(costs.rises[i] - held, 0);
    auto scratch = static_cast<int64_t>(static_cast<double>(extra) * scale);
    if (held == 0 && scratch >= kBlock) scratch += kBlock;
    facts.held_scratch.push_back(scratch);
    facts.model.nodes[i].scratch += scratch;
  }
  return facts;
}

}  // namespace lissome
