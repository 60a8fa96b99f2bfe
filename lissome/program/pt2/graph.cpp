// Values and nodes of a serialized graph; see graph.h. Nodes come in topological order and are walked in a loop: only
// child graphs recurse, as deep as the JSON parser allowed.
#include "lissome/program/pt2/graph.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <optional>

#include "lissome/program.h"
#include "lissome/program/check/gate.h"
#include "lissome/program/convert.h"
#include "lissome/program/op/register.h"
#include "lissome/program/op/scalar.h"
#include "lissome/program/pt2/default_dtype.h"
#include "lissome/program/pt2/mend_types.h"
#include "lissome/program/pt2/tensors.h"

namespace lissome {
namespace {

constexpr std::string_view kTorchOps = "torch.ops.";
constexpr std::string_view kPredispatch = "torch._functorch.predispatch.";
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

// "torch.ops.aten.add_.Tensor" -> "aten::add_.Tensor"; empty when it is no such spelling. Ops that PyTorch defines in
// Python and we have too go by our name.
std::string find_dispatcher_name(std::string_view target) {
  if (!target.starts_with(kTorchOps)) return {};
  target.remove_prefix(kTorchOps.size());
  const size_t dot = target.find('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  std::string name = std::string(target.substr(0, dot)) + "::" + std::string(target.substr(dot + 1));
  if (name.ends_with(".default")) name.resize(name.size() - std::string_view(".default").size());
  const std::string ours = find_decomposed_op(name);
  return ours.empty() ? name : ours;
}

std::string describe_json_node(const Json& node, const Origin* origin) {
  const Json* target = find_json_member(node, "target");
  return describe_place(
      target != nullptr && target->is_string() ? target->get<std::string>() : "a node without a target", origin);
}

Dimension read_dimension(const Json& value) {
  const auto [kind, inner] = json_union(value, "size");
  if (kind == "as_int") {
    const int64_t size = json_integer(inner, "size");
    if (size < 0) throw_error(ErrorKind::invalid_input, "a size of ", size, "; sizes must not be negative");
    return size;
  }
  if (kind != "as_expr") throw_error(ErrorKind::invalid_input, "a size of kind ", quote(kind), " is unknown");
  return Dimension::parse(text_member(inner, "expr_str"));
}

void index_members(const Json& graph, std::string_view key, std::unordered_map<std::string_view, const Json*>& index) {
  const Json* members = find_json_member(graph, key);
  if (members == nullptr) return;
  for (const auto& [name, value] : json_object(*members, key).items()) index.emplace(name, &value);
}

// The names that an argument reads, child graphs left out: their names are their own.
void collect_names(const Json& value, std::unordered_set<std::string_view>& names) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      if ((key == "name" || key == "as_name") && member.is_string()) names.insert(member.get_ref<const std::string&>());
      if (key != "as_graph") collect_names(member, names);
    }
  } else if (value.is_array()) {
    for (const Json& item : value) collect_names(item, names);
  }
}

}  // namespace

GraphReader::GraphReader(const Json& graph, Program& program, OriginTable& origins) : graph_(graph), origins_(origins) {
  frames_.emplace_back().program = &program;
  index_types();
  collect_used_names();
}

void GraphReader::index_types() {
  index_members(graph_, "tensor_values", tensor_types_);
  index_members(graph_, "sym_int_values", integer_types_);
}

void GraphReader::collect_used_names() {
  for (const Json& node : list_member(graph_, "nodes")) collect_names(json_member(node, "inputs"), used_names_);
  collect_names(json_member(graph_, "outputs"), used_names_);
}

void GraphReader::define(const std::string& name, Argument argument) {
  if (!frames_.back().arguments.emplace(name, std::move(argument)).second)
    throw_error(ErrorKind::invalid_input, "the value ", quote(name), " is made twice");
}

Argument GraphReader::resolve(const std::string& name) {
  size_t depth = frames_.size();
  while (depth > 0 && !frames_[depth - 1].arguments.contains(name)) --depth;
  if (depth == 0) throw_error(ErrorKind::invalid_input, "the value ", quote(name), " is used before it is made");
  Argument argument = frames_[depth - 1].arguments.at(name);
  // From an enclosing frame it passes through every region on the way in.
  for (; depth < frames_.size() && argument.is_value(); ++depth) argument = capture(depth, name, argument.value(), "-");
  return argument;
}

std::vector<Dimension> GraphReader::read_sizes(const std::string& name) const {
  const auto found = tensor_types_.find(name);
  if (found == tensor_types_.end())
    throw_error(ErrorKind::invalid_input, "the tensor ", quote(name), " has no entry in tensor_values");
  std::vector<Dimension> sizes;
  for (const Json& size : list_member(*found->second, "sizes")) sizes.push_back(read_dimension(size));
  return sizes;
}

std::optional<Dimension> GraphReader::read_integer_expression(const std::string& name) const {
  const auto found = integer_types_.find(name);
  if (found == integer_types_.end()) return std::nullopt;
  const auto [kind, value] = json_union(*found->second, "sym_int value");
  if (kind != "as_expr") return std::nullopt;
  return Dimension::parse(text_member(value, "expr_str"));
}

ValueType GraphReader::read_type(std::string_view kind, const std::string& name) const {
  ValueType type;
  if (kind == "as_sym_int" || kind == "as_int") type.kind = ValueKind::integer;
  if (kind == "as_sym_float" || kind == "as_float") type.kind = ValueKind::floating;
  if (kind == "as_sym_bool" || kind == "as_bool") type.kind = ValueKind::boolean;
  if (kind == "as_string") type.kind = ValueKind::string;
  if (kind == "as_none") type.kind = ValueKind::none;
  if (kind != "as_tensor") return type;
  type.kind = ValueKind::tensor;
  const auto found = tensor_types_.find(name);
  if (found == tensor_types_.end()) return type;
  type.dtype = dtype_of(pt2_scalar_type(json_integer(json_member(*found->second, "dtype"), "dtype")));
  try {
    type.sizes = read_sizes(name);
    type.sized = true;
  } catch (const Error&) {
    // An expression that no size of ours can say (it depends on data, or rounds): the size is found out when running.
    type.sizes.clear();
  }
  const auto is_declared = [this](const std::string& dimension) {
    return std::any_of(program().dimensions.begin(), program().dimensions.end(),
                       [&](const NamedDimension& known) { return known.name == dimension; });
  };
  for (const Dimension& size : type.sizes) {
    const auto names = size.names();
    if (!std::all_of(names.begin(), names.end(), is_declared)) type.sized = false;
  }
  if (!type.sized) type.sizes.clear();
  return type;
}

void GraphReader::read_nodes() {
  for (const Json& node : list_member(graph_, "nodes")) {
    const auto describe = [&] {
      const Json* metadata = node.is_object() ? find_json_member(node, "metadata") : nullptr;
      return node.is_object() ? describe_json_node(node, origins_.find(metadata).get()) : std::string("a node");
    };
    try {
      read_node(node);
    } catch (const Error& error) {
      throw Error(error.kind(), describe() + ": " + error.message());
    } catch (const c10::Error& error) {
      throw_error(ErrorKind::unsupported, describe(), ": ", error.what_without_backtrace());
    }
  }
  mend_types(program());
}

void GraphReader::read_node(const Json& node) {
  const std::string& target = text_member(node, "target");
  if (target.starts_with(kHigherOrder)) return read_control(node, target.substr(kHigherOrder.size()));
  if (const std::string name = find_dispatcher_name(target); !name.empty()) return read_operator(node, name);
  if (const std::string name = find_scalar_op(target); !name.empty()) return read_scalar_node(node, name);
  if (target.starts_with(kPredispatch)) return read_vmap_node(node, target.substr(kPredispatch.size()));
  throw_error(ErrorKind::unsupported, "the target ", quote(target),
              " is neither an op of the dispatcher nor a function on numbers that lissome knows");
}

ArgumentList GraphReader::read_schema_arguments(const Json& node, const Op& op) {
  const auto& expected = op.schema().arguments();
  std::vector<std::optional<Argument>> given(expected.size());
  for (const Json& input : list_member(node, "inputs")) {
    const std::string& name = text_member(input, "name");
    const int index = op.argument_index(name);
    if (index < 0) throw_error(ErrorKind::unsupported, op.name(), " of this PyTorch has no argument ", quote(name));
    const auto position = static_cast<size_t>(index);
    if (given[position]) throw_error(ErrorKind::invalid_input, "the argument ", quote(name), " is given twice");
    given[position] = fit_literal(read_argument(json_member(input, "arg")), expected[position]);
    if (const std::string misfit = find_misfit(program(), *given[position], expected[position]); !misfit.empty())
      throw_error(ErrorKind::invalid_input, "the argument ", quote(name), ": ", misfit);
  }
  ArgumentList arguments;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) given[i] = default_argument(op, i);
    if (!given[i]) throw_error(ErrorKind::invalid_input, "the argument ", quote(expected[i].name()), " is missing");
    arguments.push_back(std::move(*given[i]));
  }
  return arguments;
}

void GraphReader::read_operator(const Json& node, const std::string& name) {
  const Op op = Op::find(name);
  if (const std::string refusal = refuse_op(op, true); !refusal.empty()) {
    throw_error(ErrorKind::unsupported, op.name(), " ", refusal);
  }
  Node made{op, read_schema_arguments(node, op), {}, {}, nullptr};
  finish_node(std::move(made), node);
}

// Functions on numbers have no schema in the file: their arguments go by position.
void GraphReader::read_scalar_node(const Json& node, const std::string& name) {
  const Op op = Op::find(name);
  ArgumentList arguments;
  for (const Json& input : list_member(node, "inputs")) arguments.push_back(read_argument(json_member(input, "arg")));
  const size_t expected = op.schema().arguments().size();
  const size_t given = arguments.size();
  while (arguments.size() < expected) {
    auto value = default_argument(op, arguments.size());
    if (!value) break;
    arguments.push_back(std::move(*value));
  }
  if (arguments.size() != expected)
    throw_error(ErrorKind::invalid_input, name, " takes ", expected, " arguments, not ", given);
  finish_node({op, std::move(arguments), {}, {}, nullptr}, node);
}

ValueId GraphReader::define_output(const Json& output) {
  const auto [kind, value] = json_union(output, "output");
  if (kind == "as_none") return program().add_value({ValueKind::none, {}, false, {}});
  if (kind == "as_tensors" || kind == "as_optional_tensors") {
    return program().add_value({ValueKind::list, {}, false, {}});  // its items follow once the node stands
  }
  std::string name;
  if (kind == "as_tensor") {
    name = text_member(value, "name");
  } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    const auto [tag, inner] = json_union(value, kind);
    if (tag != "as_name")
      throw_error(ErrorKind::invalid_input, "a result must have a name, not ", describe_json(inner));
    name = json_text(inner, "as_name");
  } else {
    throw_error(ErrorKind::unsupported, "results of kind ", quote(kind), " are unknown");
  }
  const ValueId id = program().add_value(read_type(kind, name), name);
  define(name, id);
  return id;
}

void GraphReader::define_items(ValueId list, const Json& names, const std::shared_ptr<const Origin>& origin) {
  const Op getitem = Op::find("lissome::getitem");
  int64_t index = 0;
  for (const Json& item : json_list(names, "results")) {
    const std::string& name = text_member(item, "name");
    const int64_t place = index++;
    if (!used_names_.contains(name)) continue;
    const ValueId id = program().add_value(read_type("as_tensor", name), name);
    define(name, id);
    program().nodes.push_back({getitem, {list, place}, {id}, {}, origin});
  }
}

void GraphReader::finish_node(Node made, const Json& node) {
  made.origin = origins_.find(find_json_member(node, "metadata"));
  const auto& outputs = list_member(node, "outputs");
  if (made.op.has_schema() && outputs.size() != made.op.schema().returns().size())
    throw_error(ErrorKind::invalid_input, made.op.name(), " has ", made.op.schema().returns().size(),
                " results, the file names ", outputs.size());
  for (const Json& output : outputs) made.results.push_back(define_output(output));
  write_default_dtype(program(), made);
  const std::shared_ptr<const Origin> origin = made.origin;
  const std::vector<ValueId> results = made.results;
  program().nodes.push_back(std::move(made));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto [kind, value] = json_union(outputs[i], "output");
    if (kind == "as_tensors") define_items(results[i], value, origin);
  }
}

}  // namespace lissome
