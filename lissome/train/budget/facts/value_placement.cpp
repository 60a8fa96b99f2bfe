// See value_placement.h.
#include "lissome/train/budget/facts/value_placement.h"

#include "lissome/train/budget/step_model.h"

namespace lissome {
namespace {

// The argument in whose memory a result of libtorch lies; none if it has its own.
ValueId find_libtorch_source(const Program& program, const SizePrediction& sizes, const Node& node, ValueId id) {
  const BoundValue& result = sizes.measured(id);
  const bool is_list = result.kind == ValueKind::list;
  const bool aliases = find_effects(program, node).may_alias;
  ValueId source = ValueId::none;
  for (const Argument& argument : node.arguments) {
    for_each_value(argument, [&](ValueId operand) {
      const BoundValue& bound = sizes.measured(operand);
      const bool list = bound.kind == ValueKind::list;
      const bool same = result.storage >= 0 && bound.storage == result.storage;
      if (source == ValueId::none && (same || (aliases && (is_list || list)))) source = operand;
    });
  }
  return source;
}

// The argument of the node that the view step takes. The step may take a copy of it in another layout, which only the
// plan has: then it is the first argument.
ValueId find_viewed_argument(const LoweredStep& lowered, const Node& node, const PlanStep& step) {
  const ValueId taken = lowered.original(step.operands.at(0));
  ValueId first = ValueId::none, same = ValueId::none;
  for (const Argument& argument : node.arguments) {
    for_each_value(argument, [&](ValueId id) {
      if (first == ValueId::none) first = id;
      if (id == taken) same = id;
    });
  }
  return same != ValueId::none ? same : first;
}

class ValuePlacer {
 public:
  ValuePlacer(const LoweredStep& step, const Footprint& footprint, const SizePrediction& sizes)
      : step_(step), footprint_(footprint), sizes_(sizes) {
    const size_t count = step.program().values.size();
    placed_.owner.assign(count, StepModel::kNowhere);
    placed_.bytes.assign(count, 0);
    placed_.held.assign(count, false);
    placed_.joined.assign(count, false);
    placed_.owner_of_root.assign(step.plan().values.size(), ValueId::none);
  }

  // Values of other nodes come first in a program, so owners are known before they are taken.
  ValuePlacement place() {
    for (size_t i = 0; i < step_.program().nodes.size(); ++i) {
      for (const ValueId id : step_.program().nodes[i].results) {
        if (id != ValueId::none) place_result(i, id);
      }
    }
    return std::move(placed_);
  }

 private:
  void place_result(size_t position, ValueId id) {
    const Node& node = step_.program().nodes[position];
    const PlanStep* maker = step_.maker(id);
    if (maker != nullptr && maker->kernel != kReferenceStep) return place_native(node, id, *maker);
    const ValueId source = find_libtorch_source(step_.program(), sizes_, node, id);
    if (source != ValueId::none) return take_owner(id, source);
    const BoundValue& bound = sizes_.measured(id);
    const bool tensor = bound.kind == ValueKind::tensor && bound.storage >= 0;
    if (bound.kind != ValueKind::tensor && bound.kind != ValueKind::list) return;
    // libtorch holds the value, unless it was fused into a later step of ours and takes no memory. Values between the
    // nodes of one step of libtorch have no place in the plan.
    const bool kept = tensor && (maker != nullptr ? is_held(step_.planned(id)) : step_.steps(position).libtorch);
    if (tensor && !kept) placed_.joined[static_cast<size_t>(id)] = true;
    own(id, kept ? sizes_.count_wanted(id) * item_size(bound.dtype) : 0, kept);
  }

  // A step's result has memory of its own, or lies in that of an operand or of a value of the plan alone: the result of
  // attention, for example, is a view of rows that are no value of the program.
  void place_native(const Node& node, ValueId id, const PlanStep& maker) {
    const PlanValueId root = step_.root(step_.planned(id));
    if (step_.plan().value(root).storage != Storage::arena)
      return take_owner(id, find_viewed_argument(step_, node, maker));
    ValueId& owner = placed_.owner_of_root[static_cast<size_t>(root)];
    if (owner != ValueId::none) return take_owner(id, owner);
    owner = id;
    own(id, footprint_.value_bytes[static_cast<size_t>(root)], false);
  }

  bool is_held(PlanValueId id) const { return step_.plan().value(id).storage == Storage::held; }

  void own(ValueId id, int64_t bytes, bool held) {
    const auto value = static_cast<size_t>(id);
    placed_.owner[value] = static_cast<int>(id);
    placed_.bytes[value] = bytes;
    placed_.held[value] = held;
  }

  void take_owner(ValueId id, ValueId source) {
    if (source != ValueId::none) placed_.owner[static_cast<size_t>(id)] = placed_.owner[static_cast<size_t>(source)];
  }

  const LoweredStep& step_;
  const Footprint& footprint_;
  const SizePrediction& sizes_;
  ValuePlacement placed_;
};

}  // namespace

ValuePlacement place_values(const LoweredStep& step, const Footprint& footprint, const SizePrediction& sizes) {
  return ValuePlacer(step, footprint, sizes).place();
}

}  // namespace lissome
