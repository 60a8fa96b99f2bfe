#include "lissome/lower/plan/plan_builder.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "lissome/base.h"
#include "lissome/kernel.h"
#include "lissome/kernel/gemm/linear_group.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/gemm/linear_group_steps.h"
#include "lissome/runtime/step/gemm/linear_u8s8_steps.h"
#include "lissome/runtime/step/move/copy_steps.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {
namespace {

PlanKind kind_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::tensor: return PlanKind::tensor;
    case ValueKind::integer: return PlanKind::integer;
    case ValueKind::floating: return PlanKind::floating;
    case ValueKind::boolean: return PlanKind::boolean;
    default: return PlanKind::other;
  }
}

// Which dimension of something dense each dimension of a value in this format is.
std::vector<int64_t> order_of(Format format, size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), int64_t{0});
  if (format == Format::channels_last && rank >= 3) std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return order;
}

}  // namespace

PlanBuilder::PlanBuilder(Program program, int threads)
    : program_(std::move(program)), given_values_(static_cast<int>(program_.values.size())) {
  plan_.machine = {processor_name(), describe_features(), threads > 0 ? threads : usable_cores()};
  for (const NamedDimension& dimension : program_.dimensions) {
    plan_.dimensions.push_back({dimension.name, dimension.minimum, dimension.maximum});
  }
  for (const SizeRequirement& requirement : program_.requirements) {
    plan_.requirements.push_back(
        {requirement.text, SizeExpression::parse(requirement.slack.print(), plan_.dimensions)});
  }
  plan_.input_tree = program_.call_tree.inputs;
  plan_.output_tree = program_.call_tree.outputs;
  for (const StateWrite& write : program_.writes) written_[write.target] = true;
  for (const Node& node : program_.nodes) {
    for (const int position : find_effects(program_, node).writes) {
      for_each_value(node.arguments[static_cast<size_t>(position)], [&](ValueId id) { written_[id] = true; });
    }
  }
  add_inputs();
}

void PlanBuilder::add_inputs() {
  for (const ProgramInput& input : program_.inputs) {
    const ValueType& type = this->type(input.value);
    for (const Dimension& size : type.sizes) {
      // What an input's size depends on alone can be solved for.
      if (size.names().size() == 1) bound_names_.push_back(size.names().front());
    }
    PlanValue value = describe(input.value);
    value.storage = Storage::input;
    if (value.kind == PlanKind::tensor && !value.sized) {
      throw_error(ErrorKind::unsupported, "lowering: input ", quote(input.name), " has no known dtype and sizes");
    }
    if (value.kind == PlanKind::integer) value.dtype = Dtype::i64;
    if (value.kind == PlanKind::floating) value.dtype = Dtype::f64;
    if (value.kind == PlanKind::boolean) value.dtype = Dtype::boolean;
    value.sized = true;
    const PlanValueId planned = plan_.add_value(std::move(value));
    plan_values_[input.value] = planned;
    plan_.inputs.push_back({input.name, planned});
  }
}

std::vector<SizeExpression> PlanBuilder::describe_sizes(const ValueType& type) const {
  std::vector<SizeExpression> sizes;
  for (const Dimension& size : type.sizes) {
    if (const auto number = size.constant()) {
      sizes.emplace_back(*number);
    } else {
      sizes.push_back(SizeExpression::parse(size.print(), plan_.dimensions));
    }
  }
  return sizes;
}

PlanValue PlanBuilder::describe(ValueId id) const {
  PlanValue value;
  const ValueType& type = this->type(id);
  value.name = program_.value(id).name;
  value.kind = kind_of(type.kind);
  value.sized = type.kind == ValueKind::tensor && type.sized;
  value.dtype = type.dtype;
  if (value.sized) value.sizes = describe_sizes(type);
  if (is_given(id)) value.program_value = static_cast<int>(id);
  return value;
}

bool PlanBuilder::is_sized(ValueId id) const {
  const ValueType& type = this->type(id);
  if (type.kind != ValueKind::tensor || !type.sized) return false;
  for (const Dimension& size : type.sizes) {
    for (const std::string& name : size.names()) {
      if (std::find(bound_names_.begin(), bound_names_.end(), name) == bound_names_.end()) return false;
    }
  }
  return true;
}

bool PlanBuilder::is_held(ValueId id) const {
  const auto found = plan_values_.find(id);
  return found != plan_values_.end() && plan_.value(found->second).storage == Storage::held;
}

bool PlanBuilder::is_written(ValueId id) const { return written_.contains(id); }

const at::Tensor* PlanBuilder::constant(ValueId id) const {
  const Weight* weight = program_.find_weight(id);
  if (!weight || is_written(id) || !weight->tensor.defined() || weight->tensor.layout() != at::kStrided) return nullptr;
  return &weight->tensor;
}

Format PlanBuilder::format(ValueId id) const {
  const auto found = plan_values_.find(id);
  return found == plan_values_.end() ? Format::row_major : plan_.value(found->second).format;
}

bool PlanBuilder::is_strided_view(ValueId id) const { return strided_.contains(id); }

Format PlanBuilder::nearest_format(ValueId id) const {
  const std::vector<int64_t> order = memory_order(id);
  const bool last = order.size() >= 3 && order == order_of(Format::channels_last, order.size());
  return last ? Format::channels_last : Format::row_major;
}

Format PlanBuilder::shared_format(std::span<const ValueId> ids) const {
  const bool stored =
      std::any_of(ids.begin(), ids.end(), [&](ValueId id) { return format(id) == Format::channels_last; });
  const bool all =
      std::all_of(ids.begin(), ids.end(), [&](ValueId id) { return nearest_format(id) == Format::channels_last; });
  return stored || (all && !ids.empty()) ? Format::channels_last : Format::row_major;
}

void PlanBuilder::mark_permuted(ValueId id, std::vector<int64_t> order, bool dense_rows) {
  if (!std::is_sorted(order.begin(), order.end())) strided_[id] = {std::move(order), false, dense_rows};
}

void PlanBuilder::mark_part(ValueId id, std::vector<int64_t> order, bool dense_rows) {
  strided_[id] = {std::move(order), true, dense_rows};
}

bool PlanBuilder::is_part(ValueId id) const {
  const auto found = strided_.find(id);
  return found != strided_.end() && found->second.part;
}

bool PlanBuilder::has_even_runs(ValueId id) const {
  const auto found = strided_.find(id);
  return found == strided_.end() || !found->second.part || found->second.even_runs;
}

bool PlanBuilder::has_dense_rows(ValueId id) const {
  const auto found = strided_.find(id);
  return found != strided_.end() ? found->second.dense_rows : format(id) == Format::row_major;
}

std::vector<int64_t> PlanBuilder::memory_order(ValueId id) const {
  const auto found = strided_.find(id);
  if (found != strided_.end() && !found->second.order.empty()) return found->second.order;
  return order_of(found != strided_.end() ? Format::row_major : format(id), type(id).sizes.size());
}

bool PlanBuilder::lies_in(ValueId id, Format format) const {
  return memory_order(id) == order_of(format, type(id).sizes.size());
}

bool PlanBuilder::is_innermost(ValueId id, int64_t dim) const {
  const std::vector<int64_t> order = memory_order(id);
  return order[static_cast<size_t>(dim)] + 1 == static_cast<int64_t>(order.size());
}

PlanValueId PlanBuilder::use(ValueId id) {
  const auto found = plan_values_.find(id);
  if (found != plan_values_.end()) return found->second;
  const Weight* weight = program_.find_weight(id);
  LISSOME_CHECK(weight, "%", program_.value(id).name, " is used before it is made");
  PlanValue value = describe(id);
  value.name = weight->name;
  value.storage = is_written(id) ? Storage::state : Storage::constant;
  value.sized = true;
  value.kind = PlanKind::tensor;
  PlanArray array{weight->name, false, share_tensor(weight->tensor)};
  value.dtype = array.array.dtype;
  value.sizes.assign(array.array.sizes.begin(), array.array.sizes.end());
  value.array = static_cast<int>(plan_.arrays.size());
  plan_.arrays.push_back(std::move(array));
  return plan_values_[id] = plan_.add_value(std::move(value));
}

PlanValueId PlanBuilder::use(const Argument& argument) {
  return argument.is_none() ? PlanValueId::none : use(argument.value());
}

PlanValueId PlanBuilder::use_f32(const Argument& weight) {
  if (weight.is_none()) return PlanValueId::none;
  const std::string name = program_.find_weight(weight.value())->name + ".f32";
  if (!has_packed(name)) add_packed(name, share_tensor(constant(weight.value())->to(at::kFloat).contiguous()));
  return find_packed(name);
}

bool PlanBuilder::may_lay_out(ValueId id) const {
  if (!plan_values_.contains(id) || is_held(id) || !is_sized(id)) return false;
  const ValueType& type = this->type(id);
  return (is_strided_view(id) || format(id) != Format::row_major) && item_size(type.dtype) <= 8 &&
         type.sizes.size() <= static_cast<size_t>(kMoveRank);
}

ValueId PlanBuilder::lay_out(ValueId id, const Node& node, Format format) {
  const ValueId copy = program_.add_value(type(id), program_.value(id).name + ".dense");
  const PlanValueId from = use(id), to = make(copy, Storage::arena, format);
  add_step(CopyStep{.x = {from}, .y = {to}}, node);
  return copy;
}

PlanValueId PlanBuilder::use_dense(ValueId id, const Node& reader, Format format) {
  const PlanValueId value = use(id);
  if (!is_part(id) && lies_in(id, format)) return value;
  const auto [found, is_new] = dense_.try_emplace({id, format}, PlanValueId::none);
  if (!is_new) return found->second;
  return found->second = plan_values_.at(lay_out(id, reader, format));
}

PlanValueId PlanBuilder::use_dense(const Argument& argument, const Node& reader, Format format) {
  return argument.is_none() ? PlanValueId::none : use_dense(argument.value(), reader, format);
}

QuantizedRows PlanBuilder::quantize_rows(ValueId x, const Node& reader) {
  const auto [found, is_new] = quantized_.try_emplace(x);
  if (!is_new) return found->second;
  const std::string name = program_.value(x).name;
  const std::vector<Dimension> sizes = type(x).sizes;
  const std::vector<Dimension> rows(sizes.begin(), sizes.end() - 1);
  QuantizeRowsStep step;
  step.x = {use_dense(x, reader)};
  step.y = {make(add_value(name + ".u8", Dtype::u8, sizes))};
  step.scales = {make(add_value(name + ".scales", Dtype::f32, rows))};
  step.zeros = {make(add_value(name + ".zeros", Dtype::i32, rows))};
  add_step(step, reader);
  return quantized_[x] = {step.y.value, step.scales.value, step.zeros.value};
}

QuantizedGroups PlanBuilder::quantize_groups(ValueId x, const Node& reader) {
  const auto [found, is_new] = grouped_.try_emplace(x);
  if (!is_new) return found->second;
  const std::string name = program_.value(x).name;
  std::vector<Dimension> groups = type(x).sizes;
  groups.back() = Dimension(*groups.back().constant() / kWeightGroup);
  QuantizeGroupsStep step;
  step.x = {use_dense(x, reader)};
  step.y = {make(add_value(name + ".s8", Dtype::i8, type(x).sizes))};
  step.scales = {make(add_value(name + ".group_scales", Dtype::f32, groups))};
  step.sums = {make(add_value(name + ".group_sums", Dtype::i32, groups))};
  add_step(step, reader);
  return grouped_[x] = {step.y.value, step.scales.value, step.sums.value};
}

ValueId PlanBuilder::add_value(const std::string& name, Dtype dtype, std::vector<Dimension> sizes) {
  return program_.add_value({ValueKind::tensor, dtype, true, std::move(sizes)}, name);
}

PlanValueId PlanBuilder::make(ValueId id, Storage storage, Format format) {
  PlanValue value = describe(id);
  value.storage = storage;
  value.format = format;
  return plan_values_[id] = plan_.add_value(std::move(value));
}

PlanValueId PlanBuilder::add_view(ViewStep view, const Node& node, ValueId result) {
  view.y = {make(result, Storage::view)};
  add_step(view, node);
  return view.y.value;
}

PlanValueId PlanBuilder::add_packed(const std::string& name, Array array) {
  PlanValue value;
  value.name = name;
  value.storage = Storage::constant;
  value.sized = true;
  value.dtype = array.dtype;
  value.sizes.assign(array.sizes.begin(), array.sizes.end());
  value.array = static_cast<int>(plan_.arrays.size());
  plan_.arrays.push_back({name, true, std::move(array)});
  return packed_[name] = plan_.add_value(std::move(value));
}

void PlanBuilder::note_packed_rows(const at::Tensor& weight, PlanValueId value) {
  if (weight.is_contiguous()) packed_rows_.push_back({share_tensor(weight), value});
}

PlanOrigin PlanBuilder::describe_origin(const Program& program, const Node& node, int program_node) {
  PlanOrigin origin;
  if (!node.results.empty() && node.results.front() != ValueId::none) {
    origin.node = program.value(node.results.front()).name;
  }
  origin.op = node.op.name();
  origin.program_node = program_node;
  if (node.origin) {
    origin.source = node.origin->source;
    origin.code = node.origin->code;
    origin.module = node.origin->module;
    origin.module_type = node.origin->module_type;
  }
  return origin;
}

void PlanBuilder::add_step(PlanStep step, const Node& node) {
  step.origins.push_back(describe_origin(program_, node, program_node_));
  items_.emplace_back(std::move(step));
}

void PlanBuilder::keep_node(Node node) {
  bool is_added = false;
  for (const ValueId id : node.results) {
    if (id == ValueId::none) continue;
    make(id, Storage::held);
    is_added = is_added || !is_given(id);
  }
  items_.emplace_back(KeptNode{std::move(node), is_added ? -1 : program_node_});
}

// Kept nodes that only told sizes, or made lists that native steps cut themselves, and steps that only those read.
void PlanBuilder::drop_unread_items() {
  std::set<ValueId> wanted;
  std::set<PlanValueId> wanted_values;
  for (const ProgramOutput& output : program_.outputs)
    for_each_value(output.value, [&](ValueId id) { wanted.insert(id); });
  for (const StateWrite& write : program_.writes) wanted.insert(write.value);
  const auto is_wanted = [&](ValueId id) {
    const auto value = plan_values_.find(id);
    return wanted.contains(id) || (value != plan_values_.end() && wanted_values.contains(value->second));
  };
  for (const ValueId id : wanted) {
    if (plan_values_.contains(id)) wanted_values.insert(plan_values_.at(id));
  }
  std::vector<Item> kept;
  for (size_t i = items_.size(); i-- > 0;) {
    if (const auto* kept_node = std::get_if<KeptNode>(&items_[i])) {
      const Node& node = kept_node->node;
      if (is_pure(program_, node) && std::none_of(node.results.begin(), node.results.end(), is_wanted)) continue;
      for (const Argument& argument : node.arguments) {
        for_each_value(argument, [&](ValueId id) {
          wanted.insert(id);
          if (plan_values_.contains(id)) wanted_values.insert(plan_values_.at(id));
        });
      }
    } else {
      const auto& step = std::get<PlanStep>(items_[i]);
      const auto is_read = [&](PlanValueId value) { return wanted_values.contains(value); };
      if (std::none_of(step.results.begin(), step.results.end(), is_read)) continue;
      wanted_values.insert(step.operands.begin(), step.operands.end());
    }
    kept.push_back(std::move(items_[i]));
  }
  std::reverse(kept.begin(), kept.end());
  items_ = std::move(kept);
}

Plan PlanBuilder::finish() {
  drop_unread_items();
  // How many later items need a value, so that a group knows what leaves it.
  std::unordered_map<ValueId, size_t> last_needed;
  std::unordered_map<PlanValueId, ValueId> program_values;
  for (const auto& [id, value] : plan_values_) program_values[value] = id;
  const auto need = [&](ValueId id, size_t item) { last_needed[id] = std::max(last_needed[id], item); };
  for (size_t i = 0; i < items_.size(); ++i) {
    if (const auto* kept = std::get_if<KeptNode>(&items_[i])) {
      for (const Argument& argument : kept->node.arguments) for_each_value(argument, [&](ValueId id) { need(id, i); });
      continue;
    }
    for (const PlanValueId operand : std::get<PlanStep>(items_[i]).operands) {
      const auto found = program_values.find(operand);
      if (found != program_values.end()) need(found->second, i);
    }
  }
  for (const ProgramOutput& output : program_.outputs) {
    if (output.value.is_value()) need(output.value.value(), items_.size());
  }
  for (const StateWrite& write : program_.writes) need(write.value, items_.size());

  for (size_t i = 0; i < items_.size();) {
    if (auto* step = std::get_if<PlanStep>(&items_[i])) {
      plan_.steps.push_back(std::move(*step));
      ++i;
      continue;
    }
    std::vector<KeptNode> nodes;
    for (; i < items_.size() && std::holds_alternative<KeptNode>(items_[i]); ++i)
      nodes.push_back(std::get<KeptNode>(items_[i]));
    ReferenceGroup group = make_reference_group(
        program_, nodes,
        [&](ValueId id) {
          const auto found = last_needed.find(id);
          return found != last_needed.end() && found->second >= i;
        },
        [&](ValueId id) { return constant(id) != nullptr; });
    PlanStep step;
    step.kernel = kReferenceStep;
    for (const ValueId id : group.operands) step.operands.push_back(use(id));
    for (const ValueId id : group.results) step.results.push_back(plan_values_.at(id));
    step.program = std::move(group.program);
    step.origins = std::move(group.origins);
    step.keeps_operands = group.keeps_operands;
    for (const auto& [name, tensor] : group.body_weights)
      plan_.arrays.push_back({name, false, share_tensor(tensor.contiguous())});
    plan_.steps.push_back(std::move(step));
    for (const KeptNode& kept : nodes) {
      for (const Argument& argument : kept.node.arguments) {
        for_each_value(argument, [&](ValueId id) {
          if (constant(id)) use(id);
        });
      }
    }
  }
  add_outputs();
  share_packed_rows(plan_, packed_rows_);
  plan_.made_here = true;
  return std::move(plan_);
}

void PlanBuilder::add_outputs() {
  for (const ProgramOutput& output : program_.outputs) {
    PlanOutput planned;
    planned.name = output.name;
    if (output.value.is_value()) {
      planned.value = use(output.value.value());
    } else if (const auto* integer = output.value.get<int64_t>()) {
      planned.literal = *integer;
    } else if (const auto* number = output.value.get<double>()) {
      planned.literal = *number;
    } else if (const auto* flag = output.value.get<bool>()) {
      planned.literal = *flag;
    } else if (const auto* text = output.value.get<std::string>()) {
      planned.literal = *text;
    } else if (!output.value.is_none()) {
      throw_error(ErrorKind::unsupported, "lowering: output ", quote(output.name), " is neither tensor nor number");
    }
    plan_.outputs.push_back(std::move(planned));
  }
  for (const StateWrite& write : program_.writes) plan_.writes.push_back({use(write.target), use(write.value)});
}

}  // namespace lissome
