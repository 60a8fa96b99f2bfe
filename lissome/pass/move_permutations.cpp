// A linear works row by row, in whatever order the rows come. Where a permutation of rows, or their flattening, stands
// on one side of it and more of the kind on the other, it moves there to be merged: torch's multi-head attention puts
// the sequence in front of the batch and back, around products that do not care.
#include <algorithm>
#include <array>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

constexpr std::array kLayouts = {"aten::reshape",    "aten::permute",      "aten::transpose.int",
                                 "aten::unsqueeze",  "aten::squeeze.dim",  "aten::squeeze.dims",
                                 "aten::select.int", "aten::unflatten.int"};

bool is_layout(const Node* node) {
  return node != nullptr && std::find(kLayouts.begin(), kLayouts.end(), node->op.name()) != kLayouts.end();
}

// A permute or transpose that leaves the last dimension last.
bool permutes_rows(Rewriter& rewriter, const Node& node) {
  const ValueType& type =
      rewriter.type_of(node.arguments.empty() ? Argument() : rewriter.resolve(node.arguments.front()));
  const auto rank = static_cast<int64_t>(type.sizes.size());
  if (!type.sized || rank < 3) return false;
  const auto is_last = [&](int64_t dim) { return dim == -1 || dim == rank - 1; };
  if (node.is("aten::transpose.int")) {
    const auto *first = node.argument("dim0").get<int64_t>(), *second = node.argument("dim1").get<int64_t>();
    return first != nullptr && second != nullptr && !is_last(*first) && !is_last(*second);
  }
  const auto order = node.is("aten::permute") ? literal_ints(node.argument("dims")) : std::nullopt;
  return order && is_last(order->back());
}

// The same move of another value.
ArgumentList move_arguments(const Node& move, const Argument& value) {
  ArgumentList arguments = move.arguments;
  arguments.front() = value;
  return arguments;
}

// linear(move(x)) -> move(linear(x)), where more layout follows.
bool move_behind(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!node.is("aten::linear")) return false;
  const Argument input = rewriter.resolve(node.argument("input"));
  const Node* found = input.is_value() ? rewriter.producer(input.value()) : nullptr;
  if (found == nullptr || !rewriter.has_one_use(input.value()) || !permutes_rows(rewriter, *found)) return false;
  const Node move = *found;
  const Argument source = rewriter.resolve(move.arguments.front());
  if (!source.is_value() || is_layout(rewriter.producer(source.value()))) return false;
  const std::vector<int> readers = rewriter.readers(node.result());
  const bool all_layout =
      std::all_of(readers.begin(), readers.end(), [&](int one) { return is_layout(&rewriter.node(one)); });
  const bool leaves = rewriter.use_count(node.result()) != static_cast<int>(readers.size());  // as an output or write
  const ValueType result = rewriter.type_of(node.result());
  if (readers.empty() || !all_layout || leaves || !is_sized_float(result)) return false;
  ValueType type = rewriter.type_of(source);
  type.sizes.back() = result.sizes.back();
  const ValueId product = rewriter.insert_before(
      position, node.op, {source, node.argument("weight"), node.argument("bias")}, {type}, node.origin);
  rewriter.replace_node(position, move.op, move_arguments(move, product));
  return true;
}

// The linear that `value` comes from, read by this node alone, when its input is a layout's.
const Node* find_linear(Rewriter& rewriter, const Argument& value) {
  const Node* linear = rewriter.producer(value, "aten::linear");
  if (linear == nullptr || !rewriter.has_one_use(value.value()) || !is_sized_float(rewriter.type_of(value)))
    return nullptr;
  const Argument input = rewriter.resolve(linear->argument("input"));
  if (!input.is_value() || !rewriter.has_one_use(input.value())) return nullptr;
  return is_layout(rewriter.producer(input.value())) ? linear : nullptr;
}

// move(linear(layout(x))) -> linear(move(layout(x))).
bool move_in_front(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!permutes_rows(rewriter, node)) return false;
  const Node* found = find_linear(rewriter, rewriter.resolve(node.arguments.front()));
  if (found == nullptr) return false;
  const Node linear = *found;
  const Argument input = rewriter.resolve(linear.argument("input"));
  ValueType type = rewriter.type_of(node.result());
  if (!type.sized || !rewriter.type_of(input).sized) return false;
  type.sizes.back() = rewriter.type_of(input).sizes.back();
  const ValueId moved = rewriter.insert_before(position, node.op, move_arguments(node, input), {type}, node.origin);
  rewriter.replace_node(position, linear.op, {moved, linear.argument("weight"), linear.argument("bias")});
  rewriter.node(position).origin = linear.origin;
  return true;
}

// reshape(linear(layout(x))) that only takes rows apart -> linear(reshape(layout(x))).
bool unflatten_in_front(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!node.is("aten::reshape") || !node.argument("shape").is_list()) return false;
  const Argument product = rewriter.resolve(node.argument("self"));
  const Node* found = find_linear(rewriter, product);
  if (found == nullptr) return false;
  const Node linear = *found;
  const Argument input = rewriter.resolve(linear.argument("input"));
  const ValueType &flat = rewriter.type_of(product), &rows = rewriter.type_of(input),
                  &after = rewriter.type_of(node.result());
  const bool apart = flat.sizes.size() == 2 && after.sized && after.sizes.size() > 2 && rows.sized &&
                     after.sizes.back() == flat.sizes.back() && rows.sizes.back().constant();
  if (!apart) return false;
  ArgumentList shape = node.argument("shape").list();
  if (shape.size() != after.sizes.size()) return false;
  // Its last place, a number or -1, told the number of columns; the input's is known.
  shape.back() = *rows.sizes.back().constant();
  ValueType type = after;
  type.sizes.back() = rows.sizes.back();
  const ValueId wide = rewriter.insert_before(position, node.op, {input, shape}, {type}, node.origin);
  rewriter.replace_node(position, linear.op, {wide, linear.argument("weight"), linear.argument("bias")});
  rewriter.node(position).origin = linear.origin;
  return true;
}

}  // namespace

int move_permutations(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (!node.op.has_schema() || node.results.size() != 1 || rewriter.is_dead(position)) continue;
    move_behind(rewriter, position) || move_in_front(rewriter, position) || unflatten_in_front(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
