#include "lissome/program/record/recordable_forms.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace lissome {
namespace {

// Makes the nodes that stand in one node's place.
class Replacement {
 public:
  Replacement(Program& program, const Node& node) : program_(program), node_(node) {
    const ValueType& type = program.value(node.result()).type;
    type_ = {.kind = ValueKind::tensor, .dtype = type.dtype, .sized = false, .sizes = {}};
  }

  ValueId add(std::string_view op, ArgumentList arguments) { return add_as(type_.dtype, op, std::move(arguments)); }
  ValueId add_as(Dtype dtype, std::string_view op, ArgumentList arguments) {
    ValueType type = type_;
    type.dtype = dtype;
    return program_.add_node(Op::find(op), std::move(arguments), {std::move(type)}, node_.origin).result();
  }
  // The node itself, of `x` in place of its first argument.
  ValueId repeat(ValueId x) {
    ArgumentList arguments = node_.arguments;
    arguments[0] = x;
    return program_.add_node(node_.op, std::move(arguments), {type_}, node_.origin).result();
  }
  // What this gives goes by the name of the node's result.
  void finish(std::string_view op, ArgumentList arguments) {
    add(op, std::move(arguments));
    program_.nodes.back().results[0] = node_.result();
  }
  const Argument& argument(std::string_view name) const { return node_.argument(name); }
  bool is(std::string_view op) const { return node_.is(op); }
  const Node& node() const { return node_; }
  Dtype dtype() const { return type_.dtype; }  // of the node's result

 private:
  Program& program_;
  const Node& node_;
  ValueType type_;
};

// x - x': zeros that have the gradient of x.
ValueId subtract_values(Replacement& to, ValueId x, ValueId values) { return to.add("aten::sub.Tensor", {x, values}); }

// Elements that are equal to it share what it gets; where it is NaN, those that are NaN.
void replace_median(Replacement& to, ValueId x) {
  const ValueId values = to.add("aten::detach", {x}), median = to.repeat(values);
  const ValueId both = to.add("aten::logical_and", {to.add("aten::isnan", {values}), to.add("aten::isnan", {median})});
  const ValueId chosen = to.add("aten::logical_or", {to.add("aten::eq.Tensor", {values, median}), both});
  const ValueId zeros = to.add("aten::where.ScalarOther", {chosen, subtract_values(to, x, values), 0.0});
  to.finish("aten::add.Tensor",
            {median, to.add("aten::div.Tensor", {to.add("aten::sum", {zeros}), to.add("aten::sum", {chosen})})});
}

// Along `dim`, the product of all elements before each; of those behind it where x is flipped.
ValueId multiply_before(Replacement& to, ValueId x, int64_t dim) {
  const ValueId first = to.add("aten::ones_like", {to.add("aten::slice.Tensor", {x, dim, 0, 1})});
  const ValueId rest = to.add("aten::slice.Tensor", {x, dim, 0, -1});
  return to.add("aten::cumprod", {to.add("aten::cat", {ArgumentList{first, rest}, dim}), dim});
}

// J: the product of all others.
void replace_product(Replacement& to, ValueId given) {
  const bool whole = to.is("aten::prod");
  const ValueId x = whole ? to.add("aten::flatten.using_ints", {given}) : given;
  const int64_t dim = whole ? 0 : *to.argument("dim").get<int64_t>();
  const ValueId values = to.add("aten::detach", {x}), turned = to.add("aten::flip", {values, ArgumentList{dim}});
  const ValueId behind = to.add("aten::flip", {multiply_before(to, turned, dim), ArgumentList{dim}});
  const ValueId others = to.add("aten::mul.Tensor", {multiply_before(to, values, dim), behind});
  const ValueId zeros = to.add("aten::mul.Tensor", {others, subtract_values(to, x, values)});
  const Argument keep = whole ? Argument(false) : to.argument("keepdim");
  to.finish("aten::add.Tensor", {to.repeat(values), to.add("aten::sum.dim_IntList", {zeros, ArgumentList{dim}, keep})});
}

// J: of element i and product k, at least i, the product of all others up to k.
void replace_cumulated_product(Replacement& to, ValueId x) {
  const int64_t dim = *to.argument("dim").get<int64_t>();
  const ValueId values = to.add("aten::detach", {x}), last = to.add("aten::transpose.int", {values, dim, -1});
  const ValueId own = to.add("aten::gt.Scalar", {to.add("aten::diag_embed", {to.add("aten::ones_like", {last})}), 0});
  const ValueId rows = to.add("aten::unsqueeze", {last, -2});
  const ValueId others = to.add("aten::cumprod", {to.add("aten::where.ScalarSelf", {own, 1.0, rows}), -1});
  const ValueId zeros = to.add("aten::transpose.int", {subtract_values(to, x, values), dim, -1});
  const ValueId sums = to.add("aten::matmul", {to.add("aten::unsqueeze", {zeros, -2}), to.add("aten::triu", {others})});
  const ValueId back = to.add("aten::transpose.int", {to.add("aten::squeeze.dim", {sums, -2}), dim, -1});
  to.finish("aten::add.Tensor", {to.repeat(values), back});
}

// Without a look at the numbers first; one that is no class is refused by scatter.
void replace_one_hot(Replacement& to, ValueId x) {
  const ValueId classes = to.add("aten::arange", {to.argument("num_classes"), Dtype::i64});
  const ValueId places = to.add("aten::unsqueeze", {x, -1});
  const ValueId zeros = to.add("aten::mul.Scalar", {to.add("aten::eq.Tensor", {places, classes}), 0});
  to.finish("aten::scatter.value", {zeros, -1, places, 1});
}

bool is_complex_scatter(const Program& program, const Node& node) {
  const bool scatter =
      node.is("aten::slice_scatter") || node.is("aten::select_scatter") || node.is("aten::diagonal_scatter");
  if (!scatter || !node.arguments.at(0).is_value() || !node.arguments.at(1).is_value()) return false;
  const ValueType &type = program.value(node.arguments[0].value()).type,
                  &part = program.value(node.arguments[1].value()).type;
  return type.kind == ValueKind::tensor && part.kind == ValueKind::tensor && type.dtype == part.dtype &&
         (type.dtype == Dtype::c64 || type.dtype == Dtype::c128);
}

// The pairs are one dimension more, the last.
void replace_complex_scatter(Replacement& to) {
  const Node& node = to.node();
  const Dtype dtype = to.dtype() == Dtype::c64 ? Dtype::f32 : Dtype::f64;
  ArgumentList arguments = node.arguments;
  for (size_t i = 0; i < 2; ++i) arguments[i] = to.add_as(dtype, "aten::view_as_real", {arguments[i]});
  for (const char* name : {"dim", "dim1", "dim2"}) {
    const int place = node.op.argument_index(name);
    if (place < 0) continue;
    Argument& dim = arguments[static_cast<size_t>(place)];
    if (const auto* number = dim.get<int64_t>(); number != nullptr && *number < 0) dim = *number - 1;
  }
  to.finish("aten::view_as_complex", {to.add_as(dtype, node.op.name(), std::move(arguments))});
}

// As purity writes it, see write_through_view().
bool is_written_apart(const Program& program, const std::vector<Node>& made, const Node& node) {
  if (!node.is("aten::copy") || !node.arguments.at(0).is_value() || !node.arguments.at(1).is_value()) return false;
  const ValueType& type = program.value(node.arguments[0].value()).type;
  return type.kind == ValueKind::tensor && is_floating(type.dtype) && std::ranges::any_of(made, [&](const Node& other) {
           return other.is("aten::detach_copy") && other.result() == node.arguments[1].value();
         });
}

void replace_written_apart(Replacement& to, ValueId x, ValueId written) {
  const ValueId zeros = subtract_values(to, x, to.add("aten::detach", {x}));
  to.finish("aten::add.Tensor", {zeros, to.add("aten::detach", {written})});
}

// Integers and casts on the way have derivatives of their own.
bool is_plain(const Program& program, const Node& node) {
  const ValueType& type = program.value(node.arguments.at(0).value()).type;
  const ValueType& result = program.value(node.result()).type;
  return type.kind == ValueKind::tensor && is_floating(type.dtype) && result.dtype == type.dtype &&
         !(type.sized && type.sizes.empty());
}

bool replace(Program& program, const std::vector<Node>& made, Node& node) {
  if (is_written_apart(program, made, node)) {
    Replacement to(program, node);
    replace_written_apart(to, node.arguments[0].value(), node.arguments[1].value());
    return true;
  }
  if (is_complex_scatter(program, node)) {
    Replacement to(program, node);
    replace_complex_scatter(to);
    return true;
  }
  const bool median = node.is("aten::median") || node.is("aten::nanmedian");
  const bool product = node.is("aten::prod") || node.is("aten::prod.dim_int"), cumulated = node.is("aten::cumprod");
  const bool one_hot = node.is("aten::one_hot") && node.argument("num_classes") != Argument(-1);
  if (!(median || product || cumulated || one_hot) || !node.arguments.at(0).is_value()) return false;
  if (!one_hot && !is_plain(program, node)) return false;
  Replacement to(program, node);
  const ValueId x = node.arguments.at(0).value();
  if (one_hot) replace_one_hot(to, x);
  if (median) replace_median(to, x);
  if (product) replace_product(to, x);
  if (cumulated) replace_cumulated_product(to, x);
  return true;
}

void clear_flag(Node& node, std::string_view name) {
  node.arguments.at(static_cast<size_t>(node.op.argument_index(name))) = false;
}

// How many heads of the query share one of the key; nothing where that is not known or 1.
std::optional<int64_t> find_shared_heads(const Program& program, const Node& node) {
  const auto read_heads = [&](std::string_view name) -> std::optional<int64_t> {
    const ValueType& type = program.value(node.argument(name).value()).type;
    return type.sized && type.sizes.size() >= 3 ? type.sizes[type.sizes.size() - 3].constant() : std::nullopt;
  };
  if (!node.is("aten::scaled_dot_product_attention") || node.argument("enable_gqa") != Argument(true))
    return std::nullopt;
  const std::optional<int64_t> query = read_heads("query"), key = read_heads("key"), value = read_heads("value");
  if (!query || !key || key != value || *key <= 0 || *query % *key != 0) return std::nullopt;
  return *query / *key;
}

// Key and value with as many heads as the query: kernels with derivatives take no others.
void repeat_heads(Program& program, Node& node, int64_t times) {
  for (const size_t place : {1, 2}) {
    const Argument given = node.arguments.at(place);
    ValueType type = program.value(given.value()).type;
    type.sizes[type.sizes.size() - 3] = Dimension(*type.sizes[type.sizes.size() - 3].constant() * times);
    const Op repeat = Op::find("aten::repeat_interleave.self_int");
    node.arguments[place] =
        program.add_node(repeat, complete_arguments(repeat, {given, times, -3}), {type}, node.origin).result();
  }
  clear_flag(node, "enable_gqa");
}

void name_by_amax(Node& node) {
  node.op = Op::find(node.is("aten::max") ? "aten::amax" : "aten::amin");
  node.arguments = complete_arguments(node.op, {node.arguments.at(0)});
}

void put_in_row_order(Program& program, Node& node) {
  Argument& input = node.arguments.at(0);
  const ValueType type = program.value(input.value()).type;
  input = program.add_node(Op::find("aten::contiguous"), {input}, {type}, node.origin).result();
}

}  // namespace

void use_recordable_forms(Program& program) {
  std::vector<Node> nodes;
  for (Node& node : std::exchange(program.nodes, {})) {
    for (auto& body : node.bodies) {
      auto changed = std::make_shared<Program>(*body);
      use_recordable_forms(*changed);
      body = std::move(changed);
    }
    if (node.is("aten::max") || node.is("aten::min")) name_by_amax(node);
    if (node.is("aten::embedding") || node.is("aten::embedding_bag") || node.is("aten::embedding_bag.padding_idx"))
      clear_flag(node, "sparse");
    if (node.is("aten::dropout") || node.is("aten::alpha_dropout")) put_in_row_order(program, node);
    if (const auto times = find_shared_heads(program, node)) repeat_heads(program, node, *times);
    const bool replaced = replace(program, nodes, node);
    for (Node& made : std::exchange(program.nodes, {})) nodes.push_back(std::move(made));
    if (!replaced) nodes.push_back(std::move(node));
  }
  program.nodes = std::move(nodes);
}

}  // namespace lissome
