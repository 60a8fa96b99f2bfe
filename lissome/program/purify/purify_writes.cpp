// Writing ops of purify(); see purify_writes.h. Most follow one rule: `name_` with the same arguments is `name`, and
// the result takes the element type of what it replaces. The rest are rows of the tables below.
#include "lissome/program/purify/purify_writes.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace lissome {
namespace {

// In-place ops whose functional form goes by another name.
const std::unordered_map<std::string_view, std::string_view> kRenamed = {
    {"aten::bernoulli_.float", "aten::bernoulli.p"},
    {"aten::float_power_.Tensor", "aten::float_power.Tensor_Tensor"},
    {"aten::float_power_.Scalar", "aten::float_power.Tensor_Scalar"},
    {"aten::floor_divide_.Tensor", "aten::floor_divide"},
    {"aten::ldexp_", "aten::ldexp.Tensor"},
    {"aten::normal_", "aten::normal_functional"},
    {"aten::pow_.Tensor", "aten::pow.Tensor_Tensor"},
    {"aten::pow_.Scalar", "aten::pow.Tensor_Scalar"},
    {"aten::fill_diagonal_", "lissome::fill_diagonal"},
    {"aten::__iand__.Tensor", "aten::__and__.Tensor"},
    {"aten::__iand__.Scalar", "aten::__and__.Scalar"},
    {"aten::__ior__.Tensor", "aten::__or__.Tensor"},
    {"aten::__ior__.Scalar", "aten::__or__.Scalar"},
    {"aten::__ixor__.Tensor", "aten::__xor__.Tensor"},
    {"aten::__ixor__.Scalar", "aten::__xor__.Scalar"},
    {"aten::__ilshift__.Tensor", "aten::__lshift__.Tensor"},
    {"aten::__ilshift__.Scalar", "aten::__lshift__.Scalar"},
    {"aten::__irshift__.Tensor", "aten::__rshift__.Tensor"},
    {"aten::__irshift__.Scalar", "aten::__rshift__.Scalar"},
};

const std::unordered_map<std::string_view, std::string_view> kLookChanges = {
    {"aten::squeeze_", "aten::squeeze"},
    {"aten::squeeze_.dim", "aten::squeeze.dim"},
    {"aten::squeeze_.dims", "aten::squeeze.dims"},
    {"aten::unsqueeze_", "aten::unsqueeze"},
    {"aten::transpose_", "aten::transpose.int"},
    {"aten::t_", "aten::t"},
    {"aten::swapaxes_", "aten::swapaxes"},
    {"aten::swapdims_", "aten::swapdims"},
    {"aten::detach_", "aten::detach"},
    {"aten::as_strided_", "aten::as_strided"},
};

// Arguments that say where, not what: their element type has no say in the result's.
const std::unordered_set<std::string_view> kPlaces = {"index", "indices", "mask", "offsets", "condition"};

// Functional forms that answer in bool whatever they compare.
const std::unordered_set<std::string_view> kTruths = {
    "eq",        "ne",          "lt",         "le",          "gt",
    "ge",        "less",        "less_equal", "greater",     "greater_equal",
    "not_equal", "logical_and", "logical_or", "logical_xor", "logical_not"};

bool same_arguments(const c10::FunctionSchema& left, const c10::FunctionSchema& right) {
  // What is written is `self`, what is read may be `input`.
  const auto same = [](const c10::Argument& a, const c10::Argument& b) {
    return (a.name() == b.name() || a.name() == "self") && *a.type() == *b.type();
  };
  return std::equal(left.arguments().begin(), left.arguments().end(), right.arguments().begin(),
                    right.arguments().end(), same) &&
         right.returns().size() == 1 && right.returns()[0].alias_info() == nullptr;
}

std::optional<Op> find_functional_op(const Op& op) {
  if (const auto renamed = kRenamed.find(op.name()); renamed != kRenamed.end()) return Op::find(renamed->second);
  const size_t dot = op.name().find('.');
  const std::string base = op.name().substr(0, dot);
  const std::string overload = dot == std::string::npos ? "" : op.name().substr(dot);
  if (!base.ends_with('_') || base.ends_with("__")) return std::nullopt;
  const std::string plain = base.substr(0, base.size() - 1);
  for (const std::string& candidate : {plain + overload, plain, plain + ".Tensor"}) {
    const Op* found = Op::try_find(candidate);
    if (found != nullptr && same_arguments(op.schema(), found->schema())) return *found;
  }
  return std::nullopt;
}

std::string short_name(const Op& op) {
  std::string name = op.name().substr(op.name().find("::") + 2);
  return name.substr(0, name.find('.'));
}

// Written in place, a result keeps the element type of what it is written into.
bool may_change_dtype(const Program& program, const Node& node, const Op& functional) {
  const ValueType& self = program.value(node.arguments[0].value()).type;
  if (kTruths.contains(short_name(functional))) return self.dtype != Dtype::boolean;
  bool differs = self.kind != ValueKind::tensor;
  for (size_t i = 1; i < node.arguments.size(); ++i) {
    if (kPlaces.contains(node.op.schema().arguments()[i].name())) continue;
    for_each_value(node.arguments[i], [&](ValueId id) {
      const ValueType& type = program.value(id).type;
      if (type.kind == ValueKind::tensor || type.kind == ValueKind::any) differs |= type.dtype != self.dtype;
    });
    if (node.arguments[i].get<double>() != nullptr) differs |= !is_floating(self.dtype);
  }
  return differs;
}

// Appends a node whose first result is the value that is there already.
void emit_into(Program& program, ValueId result, const Op& op, ArgumentList arguments, const Node& like) {
  Node node{op, complete_arguments(op, std::move(arguments)), {result}, {}, like.origin};
  program.nodes.push_back(std::move(node));
}

// The same for what `like` writes into a tensor of `dtype`, and returns: a file may say another type of the result.
void emit_cast_into(Program& program, ValueId result, ValueId value, Dtype dtype, const Node& like) {
  const ValueType& type = program.value(result).type;
  if (type.kind == ValueKind::tensor && type.dtype != dtype)
    throw_error(ErrorKind::invalid_input, describe_node(like), ": the result is ", dtype_name(type.dtype),
                ", and what is written is ", dtype_name(dtype));
  emit_into(program, result, Op::find("aten::to.dtype"), {value, dtype}, like);
}

ValueId emit(Program& program, std::string_view op, ArgumentList arguments, ValueType type, const Node& like) {
  return program.add_node(Op::find(op), std::move(arguments), {std::move(type)}, like.origin).result();
}

std::vector<WrittenArgument> emit_plain(Program& program, const Node& node, const Op& functional) {
  const ValueType self = program.value(node.arguments[0].value()).type;
  const ValueId result = node.results[0];
  if (!may_change_dtype(program, node, functional)) {
    emit_into(program, result, functional, node.arguments, node);
  } else {
    ValueType computed = self;
    computed.kind = ValueKind::any;
    const ValueId value = program.add_node(functional, node.arguments, {std::move(computed)}, node.origin).result();
    emit_cast_into(program, result, value, self.dtype, node);
  }
  return {{0, result}};
}

// What is copied takes the element type and the sizes of where it goes.
std::vector<WrittenArgument> emit_copy(Program& program, const Node& node) {
  const ValueId self = node.arguments[0].value(), result = node.results[0];
  const ValueType type = program.value(self).type;
  if (!node.arguments[1].is_value()) {
    emit_into(program, result, Op::find("aten::copy"), node.arguments, node);
    return {{0, result}};
  }
  ValueId source = node.arguments[1].value();
  const ValueType from = program.value(source).type;
  const bool same_sizes = from.sized && type.sized && from.sizes == type.sizes;
  const bool same_dtype = from.kind == ValueKind::tensor && from.dtype == type.dtype;
  if (!same_dtype) {
    ValueType cast = from;
    cast.kind = ValueKind::tensor;
    cast.dtype = type.dtype;
    if (same_sizes) {
      emit_cast_into(program, result, source, type.dtype, node);
      return {{0, result}};
    }
    source = emit(program, "aten::to.dtype", {source, type.dtype}, std::move(cast), node);
  }
  if (same_sizes) {
    emit_into(program, result, Op::find("aten::clone"), {source}, node);
  } else {
    emit_into(program, result, Op::find("aten::expand_as"), {source, self}, node);
  }
  return {{0, result}};
}

std::vector<WrittenArgument> emit_fill(Program& program, const Node& node) {
  const bool zero = node.is("aten::zero_");
  ArgumentList arguments = {node.arguments[0]};
  if (!zero) arguments.push_back(node.arguments[1]);
  emit_into(program, node.results[0], Op::find(zero ? "aten::zeros_like" : "aten::full_like"), std::move(arguments),
            node);
  return {{0, node.results[0]}};
}

// batch_norm and its kin: the statistics come back as results of their own.
std::optional<std::vector<WrittenArgument>> emit_batch_norm(Program& program, const Node& node) {
  const Argument mean = node.argument("running_mean"), variance = node.argument("running_var");
  if (!mean.is_value() || !variance.is_value()) return std::nullopt;
  const ValueType mean_type = program.value(mean.value()).type, variance_type = program.value(variance.value()).type;
  const Op op = Op::find("aten::_native_batch_norm_legit_functional");
  Node functional{op, {}, {}, {}, node.origin};
  for (const std::string_view name :
       {"input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"}) {
    functional.arguments.push_back(node.argument(name));
  }
  functional.results = node.results;
  // The saved mean and inverse deviation, which batch_norm alone does not give, are as many as the statistics.
  while (functional.results.size() < 3) functional.results.push_back(program.add_value(mean_type));
  const ValueId new_mean = program.add_value(mean_type, program.value(mean.value()).name + "_next");
  const ValueId new_variance = program.add_value(variance_type, program.value(variance.value()).name + "_next");
  functional.results.push_back(new_mean);
  functional.results.push_back(new_variance);
  program.nodes.push_back(std::move(functional));
  return {{{node.op.argument_index("running_mean"), new_mean}, {node.op.argument_index("running_var"), new_variance}}};
}

std::optional<std::vector<WrittenArgument>> emit_instance_norm(Program& program, const Node& node) {
  const Argument mean = node.argument("running_mean"), variance = node.argument("running_var");
  if (!mean.is_value() || !variance.is_value()) return std::nullopt;
  Node functional{Op::find("lissome::instance_norm_with_update"), {}, node.results, {}, node.origin};
  for (const std::string_view name :
       {"input", "weight", "bias", "running_mean", "running_var", "momentum", "eps", "cudnn_enabled"}) {
    functional.arguments.push_back(node.argument(name));
  }
  std::vector<WrittenArgument> written;
  for (const std::string_view name : {"running_mean", "running_var"}) {
    const Value statistic = program.value(node.argument(name).value());
    written.push_back({node.op.argument_index(name), program.add_value(statistic.type, statistic.name + "_next")});
    functional.results.push_back(written.back().value);
  }
  program.nodes.push_back(std::move(functional));
  return written;
}

// The op that gives as its result what `op` writes into its last argument.
std::optional<Op> find_op_without_out(const Op& op) {
  const size_t dot = op.name().find('.');
  const std::string_view overload = dot == std::string::npos ? "" : std::string_view(op.name()).substr(dot + 1);
  if (overload != "out" && !overload.ends_with("_out")) return std::nullopt;
  const std::string base = op.name().substr(0, dot);
  const std::string kept = overload == "out" ? "Tensor" : std::string(overload.substr(0, overload.size() - 4));
  const auto& wanted = op.schema().arguments();
  for (const std::string& candidate : {base + "." + kept, base}) {
    const Op* found = Op::try_find(candidate);
    if (found == nullptr || !found->has_schema()) continue;
    const auto& given = found->schema().arguments();
    const auto same = [](const c10::Argument& a, const c10::Argument& b) {
      return a.name() == b.name() && *a.type() == *b.type();
    };
    if (given.size() + 1 == wanted.size() && std::equal(given.begin(), given.end(), wanted.begin(), same) &&
        found->schema().returns().size() == 1 && found->schema().returns()[0].alias_info() == nullptr) {
      return *found;
    }
  }
  return std::nullopt;
}

// torch.add(a, b, out=y): the result in the element type of y. Where y has other sizes it would be given new memory,
// which nothing pure does.
std::optional<std::vector<WrittenArgument>> emit_out(Program& program, const Node& node) {
  const auto plain = find_op_without_out(node.op);
  const int place = static_cast<int>(node.arguments.size()) - 1;
  if (!plain || node.results.size() != 1 || find_effects(program, node).writes != std::vector<int>{place} ||
      !node.arguments.back().is_value()) {
    return std::nullopt;
  }
  const ValueType out = program.value(node.arguments.back().value()).type;
  const ValueType result = program.value(node.results[0]).type;
  if (out.kind != ValueKind::tensor || !out.sized || !result.sized || !(out.sizes == result.sizes)) return std::nullopt;
  ArgumentList arguments(node.arguments.begin(), node.arguments.end() - 1);
  const ValueId value = program.add_node(*plain, std::move(arguments), {ValueType{}}, node.origin).result();
  emit_cast_into(program, node.results[0], value, out.dtype, node);
  return {{{place, node.results[0]}}};
}

constexpr std::array<std::string_view, 3> kBatchNorms = {"aten::batch_norm", "aten::native_batch_norm",
                                                         "aten::_native_batch_norm_legit"};

}  // namespace

std::optional<std::vector<WrittenArgument>> emit_functional(Program& program, const Node& node) {
  if (std::find(kBatchNorms.begin(), kBatchNorms.end(), node.op.name()) != kBatchNorms.end()) {
    return emit_batch_norm(program, node);
  }
  if (node.is("aten::instance_norm")) return emit_instance_norm(program, node);
  if (auto written = emit_out(program, node)) return written;
  const bool in_place = !node.arguments.empty() && node.arguments[0].is_value() && node.results.size() == 1 &&
                        find_effects(program, node).writes == std::vector<int>{0};
  if (!in_place) return std::nullopt;
  if (node.is("aten::copy_")) return emit_copy(program, node);
  if (node.is("aten::zero_") || node.is("aten::fill_.Scalar")) return emit_fill(program, node);
  const auto functional = find_functional_op(node.op);
  if (!functional) return std::nullopt;
  return emit_plain(program, node, *functional);
}

std::optional<Op> find_look_change(const Op& op) {
  const auto found = kLookChanges.find(op.name());
  if (found == kLookChanges.end()) return std::nullopt;
  return Op::find(found->second);
}

}  // namespace lissome
