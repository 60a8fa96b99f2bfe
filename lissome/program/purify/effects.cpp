// The one place that knows what an op does beyond computing its results. Three sources, in this order: the schema's
// alias annotations, the dispatcher's tags, and the short lists below of ops whose schema says less than they do.
// bind_program() holds all of it against what really happened.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "lissome/program.h"
#include "lissome/program/purify/alias_sets.h"

namespace lissome {
namespace {

using Names = std::unordered_set<std::string_view>;

// Results may share storage with tensor arguments although the schema does not say so.
const Names kQuietAliases = {
    "aten::dropout",
    "aten::feature_dropout",
    "aten::alpha_dropout",
    "aten::feature_alpha_dropout",
    "aten::native_dropout",
    "aten::einsum",
    "aten::type_as",
    "aten::broadcast_tensors",
    "aten::meshgrid",
    "aten::meshgrid.indexing",
    "aten::_unsafe_view",
    "aten::lift",
    "aten::sum_to_size",
    "aten::conj_physical",
    "aten::atleast_1d",
    "aten::atleast_2d",
    "aten::atleast_3d",
    "aten::atleast_1d.Sequence",
    "aten::atleast_2d.Sequence",
    "aten::atleast_3d.Sequence",
    "aten::cartesian_prod",
    "aten::chain_matmul",
    "aten::unsafe_chunk",
    "aten::unsafe_split.Tensor",
    "aten::unsafe_split_with_sizes",
    "aten::channel_shuffle",
    "aten::native_channel_shuffle",
    "aten::dequantize.self",
    "aten::to_dense",
    "aten::_to_cpu",
    "aten::data",
    "aten::align_tensors",
    "aten::unflatten_dense_tensors",
    "aten::_cast_Byte",
    "aten::_cast_Char",
    "aten::_cast_Double",
    "aten::_cast_Float",
    "aten::_cast_Half",
    "aten::_cast_Int",
    "aten::_cast_Long",
    "aten::_cast_Short",
    "aten::fused_moving_avg_obs_fake_quant",
    "aten::histogramdd.TensorList_bins",
    "lissome::getitem",
};

// Draws that carry no tag, besides the tagged ones.
const Names kQuietRandom = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout",
                            "aten::feature_alpha_dropout", "aten::native_dropout",
                            // Collectives: like draws, each happens once and in order.
                            "lissome::pool_moments", "lissome::sum_over_ranks"};

// Sizes of a result, or a number, that come from what a tensor holds; untagged.
const Names kQuietDataShapes = {
    "aten::where",
    "aten::nonzero_numpy",
    "aten::masked_select_backward",
    "aten::unique",
    "aten::combinations",
    "aten::tensor_split.tensor_indices_or_sections",
    "aten::_pad_packed_sequence",
    "aten::_pack_padded_sequence",
    "aten::is_nonzero",
    "aten::segment_reduce",
    "aten::repeat_interleave.self_Tensor",
    "aten::histogramdd",
    "aten::to_sparse",
    "aten::coalesce",
    "aten::narrow.Tensor",
    "aten::ctc_loss.Tensor",
};

// Running statistics, written when the flag argument is true; undefined statistics are not.
struct QuietWrite {
  std::string_view op;
  std::string_view flag;  // empty: always
};
constexpr QuietWrite kQuietWrites[] = {
    {"aten::batch_norm", "training"},
    {"aten::native_batch_norm", "training"},
    {"aten::cudnn_batch_norm", "training"},
    {"aten::miopen_batch_norm", "training"},
    {"aten::_batch_norm_impl_index", "training"},
    {"aten::instance_norm", "use_input_stats"},
    {"aten::batch_norm_update_stats", ""},
    {"aten::batch_norm_gather_stats", ""},
    {"aten::batch_norm_gather_stats_with_counts", ""},
};

// Checks: they return nothing and refuse bad values.
const Names kChecks = {"aten::_assert_async",
                       "aten::_assert_async.msg",
                       "aten::_assert_scalar",
                       "aten::_functional_assert_async.msg",
                       "aten::_functional_assert_scalar",
                       "aten::_assert_tensor_metadata",
                       "aten::sym_constrain_range",
                       "aten::sym_constrain_range_for_size"};

bool is_random_tag(const c10::OperatorHandle& handle) { return handle.hasTag(at::Tag::nondeterministic_seeded); }

bool holds_tensors(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  if (type.kind() == c10::TypeKind::AnyType) return true;
  if (type.kind() == c10::TypeKind::OptionalType) {
    return holds_tensors(*type.castRaw<c10::OptionalType>()->getElementType());
  }
  return type.kind() == c10::TypeKind::ListType && holds_tensors(*type.castRaw<c10::ListType>()->getElementType());
}

bool is_annotated(const c10::Argument& argument) { return argument.alias_info() != nullptr; }

bool is_written(const c10::Argument& argument) { return is_annotated(argument) && argument.alias_info()->isWrite(); }

// What holds for every call of an op; find_effects() refines it by the arguments.
struct OpEffects {
  Effects effects;
  const QuietWrite* quiet_write = nullptr;
};

OpEffects read_schema(const Op& op) {
  OpEffects facts;
  Effects& effects = facts.effects;
  const c10::FunctionSchema& schema = op.schema();
  const auto& arguments = schema.arguments();
  const bool quiet = kQuietAliases.contains(op.name());
  const bool annotated = std::any_of(schema.returns().begin(), schema.returns().end(), is_annotated);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (is_written(arguments[i])) effects.writes.push_back(static_cast<int>(i));
    // `other` only says what the result shall be like.
    const bool given = holds_tensors(*arguments[i].type()) && arguments[i].name() != "other";
    const bool shares = quiet ? given : annotated && is_annotated(arguments[i]);
    if (shares) effects.aliases.push_back(static_cast<int>(i));
  }
  effects.random = is_random_tag(op.handle()) || kQuietRandom.contains(op.name());
  effects.shape_from_data = op.handle().hasTag(at::Tag::dynamic_output_shape) ||
                            op.handle().hasTag(at::Tag::data_dependent_output) || kQuietDataShapes.contains(op.name());
  effects.check = kChecks.contains(op.name());
  for (const QuietWrite& row : kQuietWrites) {
    if (row.op == op.name()) facts.quiet_write = &row;
  }
  return facts;
}

const OpEffects& find_op_effects(const Op& op) {
  thread_local std::unordered_map<const std::string*, OpEffects> known;  // names are interned
  const auto found = known.find(&op.name());
  if (found != known.end()) return found->second;
  return known.emplace(&op.name(), read_schema(op)).first->second;
}

const Argument* find_argument(const Node& node, std::string_view name) {
  const int index = node.op.argument_index(name);
  return index < 0 ? nullptr : &node.arguments.at(static_cast<size_t>(index));
}

bool is_false(const Node& node, std::string_view name) {
  const Argument* argument = find_argument(node, name);
  const bool* flag = argument == nullptr ? nullptr : argument->get<bool>();
  return flag != nullptr && !*flag;
}

bool is_zero(const Node& node, std::string_view name) {
  const Argument* argument = find_argument(node, name);
  if (argument == nullptr) return false;
  const double* number = argument->get<double>();
  const int64_t* integer = argument->get<int64_t>();
  return (number != nullptr && *number == 0) || (integer != nullptr && *integer == 0);
}

// Switched off by its arguments: dropout outside training, attention and recurrent layers without dropout.
bool draws_nothing(const Node& node) {
  for (const std::string_view flag : {"train", "training"}) {
    if (is_false(node, flag)) return true;
  }
  for (const std::string_view rate : {"dropout_p", "dropout"}) {
    if (is_zero(node, rate)) return true;
  }
  return node.op.name().find("dropout") != std::string::npos && is_zero(node, "p");
}

// Indices of integers give sizes that follow from sizes; only masks count what they hold.
bool indexes_by_mask(const Program& program, const Node& node) {
  bool mask = false;
  for_each_value(node.argument("indices"), [&](ValueId id) {
    const ValueType& type = program.value(id).type;
    mask |= type.kind != ValueKind::tensor || type.dtype == Dtype::boolean || type.dtype == Dtype::u8;
  });
  return mask;
}

bool shape_depends_on_data(const Program& program, const Node& node) {
  if (node.is("aten::index.Tensor")) return indexes_by_mask(program, node);
  if (node.is("aten::repeat_interleave.Tensor") || node.is("aten::repeat_interleave.self_Tensor")) {
    return node.argument("output_size").is_none();
  }
  if (node.is("aten::one_hot")) {
    const int64_t* classes = node.argument("num_classes").get<int64_t>();
    return classes == nullptr || *classes < 0;
  }
  return true;
}

void add_quiet_writes(const Node& node, const QuietWrite& row, Effects& effects) {
  if (!row.flag.empty() && is_false(node, row.flag)) return;
  for (const std::string_view name : {"running_mean", "running_var"}) {
    const Argument* statistic = find_argument(node, name);
    if (statistic != nullptr && statistic->is_value()) effects.writes.push_back(node.op.argument_index(name));
  }
}

// What a body does to the operands that its inputs stand for, added to what the other bodies do.
void add_body_effects(const Program& body, size_t first, std::set<int>& writes, std::set<int>& aliases,
                      Effects& effects) {
  for (const Node& inner : body.nodes) {
    const Effects one = find_effects(body, inner);
    effects.random |= one.random;
    effects.shape_from_data |= one.shape_from_data;
    effects.check |= one.check;
  }
  const AliasSets sets(body);
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const ValueId input = body.inputs[i].value;
    if (sets.is_written(input)) writes.insert(static_cast<int>(first + i));
    for (const ProgramOutput& output : body.outputs) {
      for_each_value(output.value, [&](ValueId id) {
        if (sets.may_share(input, id)) aliases.insert(static_cast<int>(first + i));
      });
    }
  }
}

Effects find_control_effects(const Node& node) {
  Effects effects;
  std::set<int> writes, aliases;
  // The literals before the operands: a condition, counts, a mode.
  const size_t first = node.op.control() == Control::scan ? 3 : 1;
  for (const auto& body : node.bodies) add_body_effects(*body, first, writes, aliases, effects);
  effects.writes.assign(writes.begin(), writes.end());
  effects.aliases.assign(aliases.begin(), aliases.end());
  const auto is_absent = [&](int position) { return position >= static_cast<int>(node.arguments.size()); };
  std::erase_if(effects.writes, is_absent);
  std::erase_if(effects.aliases, is_absent);
  effects.may_alias = !effects.aliases.empty();
  return effects;
}

}  // namespace

Effects find_effects(const Program& program, const Node& node) {
  if (!node.op.has_schema()) return find_control_effects(node);
  const OpEffects& facts = find_op_effects(node.op);
  Effects effects = facts.effects;
  if (facts.quiet_write != nullptr) add_quiet_writes(node, *facts.quiet_write, effects);
  if (effects.random && draws_nothing(node)) effects.random = false;
  if (effects.shape_from_data) effects.shape_from_data = shape_depends_on_data(program, node);
  // An argument that holds no value (a literal, none) has no storage.
  const auto has_no_value = [&](int position) {
    bool any = false;
    for_each_value(node.arguments.at(static_cast<size_t>(position)), [&](ValueId) { any = true; });
    return !any;
  };
  std::erase_if(effects.aliases, has_no_value);
  std::erase_if(effects.writes, has_no_value);
  effects.may_alias = !effects.aliases.empty();
  return effects;
}

bool is_pure(const Program& program, const Node& node) {
  const Effects effects = find_effects(program, node);
  return effects.writes.empty() && !effects.random && !effects.check;
}

}  // namespace lissome
