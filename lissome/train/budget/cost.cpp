// See cost.h.
#include "lissome/train/budget/cost.h"

#include <ATen/core/ivalue.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "lissome/footprint.h"
#include "lissome/measure.h"
#include "lissome/runtime/step/move/offload_steps.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {
namespace {

constexpr int kRuns = 5;  // runs for the medians, after one to warm up

// Listens to libtorch's CPU allocator on this thread.
class AllocationMeter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    bytes > 0 ? counter_.add(bytes) : counter_.remove(-bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }
  MemoryCounter& counter() { return counter_; }

 private:
  MemoryCounter counter_;
};

class MeterGuard {
 public:
  explicit MeterGuard(const std::shared_ptr<AllocationMeter>& meter)
      : guard_(c10::DebugInfoKind::PROFILER_STATE, meter) {}

 private:
  c10::DebugInfoGuard guard_;
};

using NamedNodes = std::unordered_map<std::string, int>;  // by the name of the first result

NamedNodes name_nodes(const Program& program) {
  NamedNodes nodes;
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const std::vector<ValueId>& results = program.nodes[i].results;
    if (!results.empty() && results.front() != ValueId::none)
      nodes[program.value(results.front()).name] = static_cast<int>(i);
  }
  return nodes;
}

TensorView view_of(const at::Tensor& tensor) {
  return {dtype_of(tensor.scalar_type()), tensor.sizes().vec(), tensor.strides().vec(), tensor.data_ptr()};
}

// Measures for each node its seconds (median over runs) and the rise of libtorch's memory while it runs (maximum).
class NodeMeter {
 public:
  explicit NodeMeter(const StepSource& source)
      : nodes_(name_nodes(*source.program)),
        plan_(*source.plan),
        session_(std::make_shared<Plan>(plan_), {.threads = source.threads, .offload_folder = source.offload_folder}),
        times_(source.program->nodes.size()),
        rise_(source.program->nodes.size(), 0) {}

  void run(const std::vector<at::Tensor>& inputs) {
    std::vector<TensorView> views;
    for (const at::Tensor& input : inputs) views.push_back(view_of(input));
    session_.run(views);
    const auto meter = std::make_shared<AllocationMeter>();
    const MeterGuard guard(meter);
    for (int i = 0; i < kRuns; ++i) {
      live_ = meter->counter().live();
      const StepSink sink = [&](const StepTiming& timing) { note(timing, meter->counter()); };
      meter->counter().reset_peak();
      for (std::vector<double>& times : times_) times.push_back(0);
      moving_.push_back(0);
      session_.run(views, &sink);
    }
  }

  double seconds(size_t node) const { return summarize(times_[node]).median; }
  double moving() const { return summarize(moving_).median; }
  int64_t rise(size_t node) const { return rise_[node]; }

 private:
  void note(const StepTiming& timing, MemoryCounter& counter) {
    const PlanStep& step = plan_.steps[static_cast<size_t>(timing.step)];
    const double seconds = static_cast<double>(timing.nanoseconds) * 1e-9;
    if (is_step<OffloadStep>(step) || is_step<ReloadStep>(step)) {
      moving_.back() += seconds;
      return;
    }
    const bool native = step.kernel != kReferenceStep;
    // The time of a step that fuses several nodes counts for the last of them.
    const PlanOrigin& origin = native && !step.origins.empty() ? step.origins.back() : *timing.origin;
    if (const auto found = nodes_.find(origin.node); found != nodes_.end()) {
      const auto node = static_cast<size_t>(found->second);
      times_[node].back() += seconds;  // summed over its steps
      if (!native) rise_[node] = std::max(rise_[node], counter.peak() - live_);
    }
    live_ = counter.live();
    counter.reset_peak();
  }

  const NamedNodes nodes_;
  const Plan& plan_;
  Session session_;
  std::vector<std::vector<double>> times_;  // by node, of each run
  std::vector<double> moving_;              // of each run
  std::vector<int64_t> rise_;
  int64_t live_ = 0;
};

// Fills a model with the owners of memory: by the plan for its own steps, by observation for steps of libtorch.
class ModelMaker {
 public:
  ModelMaker(const StepSource& source, const std::vector<at::Tensor>& measured, const std::vector<Sizes>& sizes)
      : program_(*source.program),
        plan_(*source.plan),
        footprint_(find_footprint(plan_, sizes, source.threads)),
        bound_(bind_program(program_, {measured.begin(), measured.end()})),
        dimensions_(bind_sizes(program_, sizes)) {
    for (size_t i = 0; i < plan_.values.size(); ++i) plan_values_[plan_.values[i].name] = static_cast<int>(i);
    for (size_t i = 0; i < plan_.values.size(); ++i) roots_.push_back(static_cast<int>(i));
    for (const Value& value : program_.values) names_.insert(value.name);
    sources_.resize(plan_.values.size());
    for (const PlanStep& step : plan_.steps) {
      note_sources(step);
      for (const int result : step.results) {
        made_by_[result] = &step;
        if (plan_.values[static_cast<size_t>(result)].storage == Storage::view)
          roots_[static_cast<size_t>(result)] = roots_[static_cast<size_t>(find_viewed(step))];
      }
      if (step.kernel != kReferenceStep) continue;
      for (const PlanOrigin& origin : step.origins) in_libtorch_.insert(origin.node);
    }
  }

  StepFacts make() {
    StepModel& model = facts_.model;
    const size_t count = program_.values.size();
    model.producer.assign(count, -1);
    model.bytes.assign(count, 0);
    model.owner.assign(count, StepModel::kNowhere);
    facts_.held.assign(count, false);
    for (size_t i = 0; i < program_.nodes.size(); ++i) add_node(static_cast<int>(i));
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Argument& output = program_.outputs[i].value;
      if (output.is_value() && plan_.outputs[i].leaves_after < 0)
        model.leaving.push_back(static_cast<int>(output.value()));
    }
    relax_joined();
    mark_forward();
    add_scratch();
    hold_early_outputs();
    return facts_;
  }

  // The number of elements that a node computes at the wanted sizes, over that at the measured sizes.
  double scale(const Node& node) const {
    double wanted = 0, made = 0;
    for (const ValueId id : node.results) {
      if (id == ValueId::none) continue;
      const BoundValue& bound = bound_.values[static_cast<size_t>(id)];
      int64_t elements = 1;
      for (const int64_t size : bound.sizes) elements *= size;
      if (bound.kind != ValueKind::tensor) continue;
      made += static_cast<double>(elements);
      wanted += static_cast<double>(count_elements(id));
    }
    // Gradients of weights have the same size for any batch that they are summed over.
    if (made == wanted) return batch_scale();
    return made > 0 ? wanted / made : 1;
  }

  // Bytes of the node's results that libtorch held when it was measured.
  int64_t count_held(const Node& node) const {
    int64_t bytes = 0;
    for (const ValueId id : node.results) {
      if (id == ValueId::none || !facts_.held[static_cast<size_t>(id)]) continue;
      const BoundValue& bound = bound_.values[static_cast<size_t>(id)];
      int64_t elements = 1;
      for (const int64_t size : bound.sizes) elements *= size;
      bytes += elements * item_size(bound.dtype);
    }
    return bytes;
  }

 private:
  double batch_scale() const {
    double scale = 1;
    for (const auto& [name, size] : dimensions_) {
      const auto found = bound_.dimensions.find(name);
      if (found != bound_.dimensions.end() && found->second > 0)
        scale *= static_cast<double>(size) / static_cast<double>(found->second);
    }
    return scale;
  }

  int64_t count_elements(ValueId id) const {
    const ValueType& type = program_.value(id).type;
    int64_t elements = 1;
    if (!type.sized) {
      for (const int64_t size : bound_.values[static_cast<size_t>(id)].sizes) elements *= size;
      return elements;
    }
    for (size_t i = 0; i < type.sizes.size(); ++i) {
      const auto size = type.sizes[i].try_evaluate(dimensions_);
      elements *= size ? *size : bound_.values[static_cast<size_t>(id)].sizes.at(i);
    }
    return elements;
  }

  void add_node(int position) {
    const Node& node = program_.nodes[static_cast<size_t>(position)];
    StepNode made;
    made.repeatable = is_pure(program_, node);
    std::set<int> reads;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id) {
        const int producer = facts_.model.producer[static_cast<size_t>(id)];
        if (producer < 0) return;
        reads.insert(static_cast<int>(id));
        if (!joined_.contains(id)) return;
        const std::vector<int>& more = facts_.model.nodes[static_cast<size_t>(producer)].reads;
        reads.insert(more.begin(), more.end());
      });
    }
    for (const int value : reads) (is_read(node, value) ? made.reads : made.names).push_back(value);
    for (const ValueId id : node.results) {
      if (id == ValueId::none) continue;
      made.results.push_back(static_cast<int>(id));
      facts_.model.producer[static_cast<size_t>(id)] = position;
      place(node, id);
    }
    facts_.model.nodes.push_back(std::move(made));
  }

  // A node that was fused into its readers needs only what they need.
  void relax_joined() {
    std::vector<std::set<int>> wanted(program_.values.size());  // by fused value: the values that its readers read
    for (size_t i = facts_.model.nodes.size(); i-- > 0;) {
      StepNode& node = facts_.model.nodes[i];
      const bool joined = !node.results.empty() &&
                          !steps_of_.contains(program_.value(program_.nodes[i].results.front()).name) &&
                          std::all_of(node.results.begin(), node.results.end(),
                                      [&](int value) { return joined_.contains(static_cast<ValueId>(value)); });
      if (joined) {
        std::vector<int> kept;
        for (const int value : node.reads) {
          const bool read = std::any_of(node.results.begin(), node.results.end(), [&](int result) {
            return wanted[static_cast<size_t>(result)].contains(value);
          });
          (read ? kept : node.names).push_back(value);
        }
        node.reads = std::move(kept);
      }
      for (const int value : node.reads) {
        if (joined_.contains(static_cast<ValueId>(value)))
          wanted[static_cast<size_t>(value)].insert(node.reads.begin(), node.reads.end());
      }
    }
  }

  // The values that a step reads through values of the plan alone, such as a copy in another layout.
  void note_sources(const PlanStep& step) {
    std::set<int> read;
    for (const int operand : step.operands) {
      if (operand < 0) continue;
      const bool named = names_.contains(plan_.values[static_cast<size_t>(operand)].name);
      const std::set<int>& more = sources_[static_cast<size_t>(operand)];
      if (named) read.insert(roots_[static_cast<size_t>(operand)]);
      if (!named) read.insert(more.begin(), more.end());
    }
    for (const int result : step.results) sources_[static_cast<size_t>(result)] = read;
    for (const PlanOrigin& origin : step.origins) {
      NodeSteps& steps = steps_of_[origin.node];
      steps.read.insert(read.begin(), read.end());
      steps.native = steps.native && step.kernel != kReferenceStep;
    }
  }

  // Whether the steps of the node read the memory of its argument. Our gradient of max pooling, for example, reads only
  // the sizes of the pooled value.
  bool is_read(const Node& node, int value) const {
    const auto steps = steps_of_.find(program_.value(node.results.front()).name);
    if (steps == steps_of_.end() || !steps->second.native) return true;
    const auto planned = plan_values_.find(program_.values[static_cast<size_t>(value)].name);
    if (planned == plan_values_.end() || !made_by_.contains(planned->second)) return true;
    return steps->second.read.contains(roots_[static_cast<size_t>(planned->second)]);
  }

  void place(const Node& node, ValueId id) {
    const auto value = static_cast<size_t>(id);
    const auto planned = plan_values_.find(program_.value(id).name);
    const PlanStep* step = nullptr;
    if (planned != plan_values_.end()) {
      if (const auto found = made_by_.find(planned->second); found != made_by_.end()) step = found->second;
    }
    if (step != nullptr && step->kernel != kReferenceStep) {
      return place_native(node, id, planned->second);
    }
    const ValueId source = find_source(node, id);
    if (source != ValueId::none) return take_owner(value, source);
    const BoundValue& bound = bound_.values[value];
    const bool tensor = bound.kind == ValueKind::tensor && bound.storage >= 0;
    // libtorch holds the value, unless it was fused into a later step of ours and takes no memory.
    const bool kept = tensor && (step != nullptr ? is_held(planned->second) : is_inside_libtorch(node));
    if (bound.kind != ValueKind::tensor && bound.kind != ValueKind::list) return;
    if (tensor && !kept) joined_.insert(id);
    own(value, kept ? count_elements(id) * item_size(bound.dtype) : 0, kept);
  }

  // A step's result has memory of its own, or lies in that of an operand or of a value of the plan alone: the result of
  // attention, for example, is a view of rows that are no value of the program.
  void place_native(const Node& node, ValueId id, int plan_value) {
    const int root = roots_[static_cast<size_t>(plan_value)];
    if (plan_.values[static_cast<size_t>(root)].storage != Storage::arena)
      return take_owner(static_cast<size_t>(id), find_native_source(node, *made_by_.at(plan_value)));
    const auto known = owner_of_root_.find(root);
    if (known != owner_of_root_.end()) return take_owner(static_cast<size_t>(id), known->second);
    owner_of_root_[root] = id;
    own(static_cast<size_t>(id), footprint_.value_bytes[static_cast<size_t>(root)], false);
  }

  bool is_held(int plan_value) const { return plan_.values[static_cast<size_t>(plan_value)].storage == Storage::held; }

  // Values between the nodes of one step of libtorch have no place in the plan.
  bool is_inside_libtorch(const Node& node) const {
    return in_libtorch_.contains(program_.value(node.results.front()).name);
  }

  void own(size_t value, int64_t bytes, bool held) {
    facts_.model.owner[value] = static_cast<int>(value);
    facts_.model.bytes[value] = bytes;
    facts_.held[value] = held;
  }

  void take_owner(size_t value, ValueId source) {
    if (source != ValueId::none) facts_.model.owner[value] = facts_.model.owner[static_cast<size_t>(source)];
  }

  // The operand of the node that the view step takes, which may be a copy of it in another layout.
  ValueId find_native_source(const Node& node, const PlanStep& step) const {
    const std::string& name = plan_.values[static_cast<size_t>(step.operands.at(0))].name;
    ValueId first = ValueId::none, same = ValueId::none;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id) {
        if (first == ValueId::none) first = id;
        if (program_.value(id).name == name) same = id;
      });
    }
    return same != ValueId::none ? same : first;
  }

  // The argument in whose memory a result of libtorch lies; none if it has its own.
  ValueId find_source(const Node& node, ValueId id) const {
    const BoundValue& result = bound_.values[static_cast<size_t>(id)];
    const bool is_list = result.kind == ValueKind::list;
    const bool aliases = find_effects(program_, node).may_alias;
    ValueId source = ValueId::none;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId operand) {
        const BoundValue& bound = bound_.values[static_cast<size_t>(operand)];
        const bool list = bound.kind == ValueKind::list;
        const bool same = result.storage >= 0 && bound.storage == result.storage;
        if (source == ValueId::none && (same || (aliases && (is_list || list)))) source = operand;
      });
    }
    return source;
  }

  // The values that outputs other than gradients need.
  void mark_forward() {
    StepModel& model = facts_.model;
    std::vector<bool> needed(program_.values.size(), false);
    for (const ProgramOutput& output : program_.outputs) {
      if (output.value.is_value() && !output.name.starts_with("gradient."))
        needed[static_cast<size_t>(output.value.value())] = true;
    }
    for (size_t i = model.nodes.size(); i-- > 0;) {
      StepNode& node = model.nodes[i];
      node.forward = std::any_of(node.results.begin(), node.results.end(),
                                 [&](int value) { return needed[static_cast<size_t>(value)]; });
      if (!node.forward) continue;
      for (const int value : node.reads) needed[static_cast<size_t>(value)] = true;
    }
  }

  void add_scratch() {
    const NamedNodes nodes = name_nodes(program_);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (plan_.steps[i].origins.empty()) continue;
      const auto node = nodes.find(plan_.steps[i].origins.back().node);
      if (node == nodes.end()) continue;
      facts_.model.nodes[static_cast<size_t>(node->second)].scratch += footprint_.scratch_bytes[i] + count_unnamed(i);
      add_in_place(i, facts_.model.nodes[static_cast<size_t>(node->second)]);
    }
  }

  // A gradient that leaves early stays until the node behind which it leaves, the last reader of its weight.
  void hold_early_outputs() {
    const NamedNodes nodes = name_nodes(program_);
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const int after = plan_.outputs[i].leaves_after;
      if (after < 0 || !program_.outputs[i].value.is_value()) continue;
      const auto value = static_cast<int>(program_.outputs[i].value.value());
      const std::vector<PlanOrigin>& origins = plan_.steps[static_cast<size_t>(after)].origins;
      const auto node = origins.empty() ? nodes.end() : nodes.find(origins.back().node);
      if (node == nodes.end() || node->second <= facts_.model.producer[static_cast<size_t>(value)]) continue;
      std::vector<int>& reads = facts_.model.nodes[static_cast<size_t>(node->second)].reads;
      if (std::find(reads.begin(), reads.end(), value) == reads.end()) reads.push_back(value);
    }
  }

  // Values that a step makes for a later step of the same node: packed weights, parts of a sum.
  int64_t count_unnamed(size_t step) const {
    int64_t bytes = 0;
    for (const int result : plan_.steps[step].results) {
      if (!owner_of_root_.contains(result)) bytes += footprint_.value_bytes[static_cast<size_t>(result)];
    }
    return bytes;
  }

  // The step's result must be the one that the node is known by, and its operands values that other nodes made.
  void add_in_place(size_t step, StepNode& node) {
    for (const int operand : footprint_.in_place[step]) {
      const auto made = owner_of_root_.find(plan_.steps[step].results[0]), read = owner_of_root_.find(operand);
      if (made == owner_of_root_.end() || read == owner_of_root_.end()) continue;
      const bool reads = std::any_of(node.reads.begin(), node.reads.end(), [&](int value) {
        return facts_.model.owner[static_cast<size_t>(value)] == static_cast<int>(read->second);
      });
      const bool makes = std::count(node.results.begin(), node.results.end(), static_cast<int>(made->second)) > 0;
      if (reads && makes) node.in_place.push_back(static_cast<int>(read->second));
    }
  }

  const Program& program_;
  const Plan& plan_;
  const Footprint footprint_;
  const Bound bound_;
  const DimensionBindings dimensions_;
  std::unordered_map<std::string, int> plan_values_;
  std::unordered_map<int, const PlanStep*> made_by_;  // by plan value
  std::vector<int> roots_;                            // by plan value: in whose memory it lies
  std::unordered_set<std::string> names_;             // of the program's values
  std::vector<std::set<int>> sources_;                // by plan value: roots that the step which makes it reads
  struct NodeSteps {
    std::set<int> read;  // roots
    bool native = true;
  };
  std::unordered_map<std::string, NodeSteps> steps_of_;  // by the first result of a node
  std::unordered_map<int, ValueId> owner_of_root_;
  std::set<std::string> in_libtorch_;  // nodes, by their first result
  // Values that were fused into the step of a later node, which reads the same values as the node that makes them.
  std::set<ValueId> joined_;
  StepFacts facts_;
};

}  // namespace

DimensionBindings bind_sizes(const Program& program, const std::vector<Sizes>& sizes) {
  DimensionBindings bindings;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ValueType& type = program.value(program.inputs[i].value).type;
    for (size_t k = 0; k < type.sizes.size() && k < sizes[i].size(); ++k) {
      if (type.sizes[k].operation() == Dimension::Operation::name) bindings[type.sizes[k].name()] = sizes[i][k];
    }
  }
  return bindings;
}

StepFacts describe_step(const StepSource& source, const std::vector<at::Tensor>& examples,
                        const std::vector<Sizes>& sizes) {
  LISSOME_CHECK(examples.size() == source.program->inputs.size() && sizes.size() == examples.size());
  return ModelMaker(source, examples, sizes).make();
}

StepFacts measure_step(const StepSource& source, const std::vector<at::Tensor>& measured,
                       const std::vector<Sizes>& sizes) {
  LISSOME_CHECK(measured.size() == source.program->inputs.size() && sizes.size() == measured.size());
  ModelMaker maker(source, measured, sizes);
  StepFacts facts = maker.make();
  NodeMeter meter(source);
  meter.run(measured);
  for (size_t i = 0; i < facts.model.nodes.size(); ++i) {
    const double scale = facts.scales.emplace_back(maker.scale(source.program->nodes[i]));
    facts.model.nodes[i].seconds = meter.seconds(i) * scale;
    const int64_t extra = std::max<int64_t>(meter.rise(i) - maker.count_held(source.program->nodes[i]), 0);
    facts.model.nodes[i].scratch += static_cast<int64_t>(static_cast<double>(extra) * scale);
  }
  return facts;
}

NodeSeconds measure_nodes(const StepSource& source, const std::vector<at::Tensor>& inputs) {
  LISSOME_CHECK(inputs.size() == source.program->inputs.size());
  NodeMeter meter(source);
  meter.run(inputs);
  NodeSeconds seconds{{}, meter.moving()};
  for (size_t i = 0; i < source.program->nodes.size(); ++i) seconds.nodes.push_back(meter.seconds(i));
  return seconds;
}

StepMemory predict_memory(const StepFacts& facts, const RunOrder& schedule, const Plan& plan,
                          const std::vector<Sizes>& sizes, int threads) {
  StepModel held = facts.model;
  for (size_t i = 0; i < held.bytes.size(); ++i) {
    if (!facts.held[i]) held.bytes[i] = 0;
  }
  for (StepNode& node : held.nodes) {
    const bool native = std::none_of(node.results.begin(), node.results.end(),
                                     [&](int value) { return facts.held[static_cast<size_t>(value)]; });
    if (native) node.scratch = 0;
  }
  return {find_footprint(plan, sizes, threads).arena_bytes, judge_schedule(held, schedule, INT64_MAX).peak};
}

StepMemory measure_memory(const Session& session, const std::function<void()>& work) {
  const auto meter = std::make_shared<AllocationMeter>();
  {
    const MeterGuard guard(meter);
    work();
  }
  return {session.memory().arena, meter->counter().peak()};
}

}  // namespace lissome
