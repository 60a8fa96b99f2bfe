// Softmax as people write it out, exp(x - max) / sum, and the safe form that decomposed attention comes with: rows that
// are -inf throughout give zeros there.
#include <cmath>

#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

// The one dimension that a reduction with keepdim goes over, counted from the front.
std::optional<int64_t> read_reduced(Rewriter& rewriter, const Node& node, ValueId input) {
  const ValueType& type = rewriter.type_of(input);
  if (!is_sized_float(type) || node.argument("keepdim") != Argument(true)) return std::nullopt;
  const Argument& dim = node.argument("dim");
  const auto* single = dim.get<int64_t>();
  const auto list = literal_ints(dim);
  if (single == nullptr && (!list || list->size() != 1)) return std::nullopt;
  const int64_t place = single != nullptr ? *single : list->front();
  return place < 0 ? place + static_cast<int64_t>(type.sizes.size()) : place;
}

bool keeps_dtype(const Node& node, const ValueType& type) {
  const Argument& dtype = node.argument("dtype");
  return dtype.is_none() || dtype == Argument(type.dtype);
}

// amax(x, d, keepdim), or the values of max(x, d, keepdim): d.
std::optional<int64_t> match_maximum(Rewriter& rewriter, const Argument& argument, ValueId x) {
  const Node* node = argument.is_value() ? rewriter.producer(argument.value()) : nullptr;
  if (node == nullptr || (!node->is("aten::amax") && !node->is("aten::max.dim"))) return std::nullopt;
  if (node->results[0] != argument.value() || rewriter.resolve(node->argument("self")) != Argument(x))
    return std::nullopt;
  return read_reduced(rewriter, *node, x);
}

// exp(x) or exp(x - max(x)): what the numerator is, and the dimension of the maximum.
struct Exponential {
  ValueId value = ValueId::none, x = ValueId::none;
  std::optional<int64_t> maximum;
};

std::optional<Exponential> match_exponential(Rewriter& rewriter, const Argument& argument) {
  const Node* node = rewriter.producer(argument, "aten::exp");
  if (node == nullptr) return std::nullopt;
  const Argument inner = rewriter.resolve(node->argument("self"));
  const Node* difference = rewriter.producer(inner, "aten::sub.Tensor");
  if (difference == nullptr || !has_unit_alpha(*difference)) return std::nullopt;
  const ValueId x = rewriter.resolve(difference->argument("self")).value();
  if (x == ValueId::none) return std::nullopt;
  const auto maximum = match_maximum(rewriter, rewriter.resolve(difference->argument("other")), x);
  return maximum ? std::optional(Exponential{argument.value(), x, maximum}) : std::nullopt;
}

// exp(x - max(x)) / sum(exp(x - max(x))) -> softmax(x). Without the maximum the written-out form overflows where
// softmax does not: it stays.
bool fuse_exponentials(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::div.Tensor") || !is_sized_float(rewriter.type_of(node.result()))) return false;
  const auto numerator = match_exponential(rewriter, rewriter.resolve(node.argument("self")));
  const Node* sum = rewriter.producer(rewriter.resolve(node.argument("other")), "aten::sum.dim_IntList");
  if (!numerator || sum == nullptr || rewriter.resolve(sum->argument("self")) != Argument(numerator->value))
    return false;
  const ValueType& type = rewriter.type_of(numerator->x);
  const auto dim = read_reduced(rewriter, *sum, numerator->value);
  if (!dim || dim != numerator->maximum || !keeps_dtype(*sum, type) || rewriter.type_of(node.result()) != type)
    return false;
  if (!is_closed(rewriter, node, {numerator->x})) return false;
  rewriter.replace_node(position, Op::find("aten::softmax.int"), {numerator->x, *dim});
  return true;
}

// A value that is zero everywhere.
bool is_zero(Rewriter& rewriter, const Argument& argument) {
  if (const Node* full = rewriter.producer(argument, "aten::full_like")) {
    return constant_number(rewriter, rewriter.resolve(full->argument("fill_value"))) == 0.0;
  }
  return rewriter.producer(argument, "aten::zeros_like") != nullptr || constant_number(rewriter, argument) == 0.0;
}

// logical_not(any(logical_not(x == -inf))): x, where no element of its row is more than -inf.
std::optional<ValueId> match_hopeless_rows(Rewriter& rewriter, const Argument& argument, int64_t dim) {
  const auto through = [&](const Argument& value, std::string_view op) -> const Node* {
    return rewriter.producer(rewriter.resolve(value), op);
  };
  const Node* none = through(argument, "aten::logical_not");
  const Node* any = none == nullptr ? nullptr : through(none->argument("self"), "aten::any.dim");
  const Node* unequal = any == nullptr ? nullptr : through(any->argument("self"), "aten::logical_not");
  const Node* equal = unequal == nullptr ? nullptr : through(unequal->argument("self"), "aten::eq.Scalar");
  if (equal == nullptr || constant_number(rewriter, equal->argument("other")) != -INFINITY) return std::nullopt;
  const ValueId x = rewriter.resolve(equal->argument("self")).value();
  const auto over = x == ValueId::none ? std::nullopt : read_reduced(rewriter, *any, x);
  return over == dim ? std::optional(x) : std::nullopt;
}

// where(rows of -inf, 0, softmax(x)) -> _safe_softmax(x).
bool fuse_safe(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  const bool tensors = node.is("aten::where.self"), scalar = node.is("aten::where.ScalarSelf");
  if ((!tensors && !scalar) || !is_sized_float(rewriter.type_of(node.result()))) return false;
  const Node* softmax = rewriter.producer(rewriter.resolve(node.argument("other")), "aten::softmax.int");
  if (softmax == nullptr || !is_zero(rewriter, rewriter.resolve(node.argument("self")))) return false;
  const ValueType& type = rewriter.type_of(node.result());
  const auto* dim = softmax->argument("dim").get<int64_t>();
  if (dim == nullptr || rewriter.type_of(softmax->argument("self")) != type || !keeps_dtype(*softmax, type))
    return false;
  const int64_t place = *dim < 0 ? *dim + static_cast<int64_t>(type.sizes.size()) : *dim;
  const auto x = match_hopeless_rows(rewriter, node.argument("condition"), place);
  if (!x || rewriter.resolve(softmax->argument("self")) != Argument(*x) || !is_closed(rewriter, node, {*x}))
    return false;
  rewriter.replace_node(position, Op::find("aten::_safe_softmax"), {*x, *dim});
  return true;
}

}  // namespace

int fuse_softmax(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (node.results.size() != 1 || node.result() == ValueId::none) continue;
    fuse_exponentials(rewriter, position) || fuse_safe(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
