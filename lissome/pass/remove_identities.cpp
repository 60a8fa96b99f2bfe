// Nodes that return what they are given.

#include <algorithm>
#include <array>

#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

constexpr std::array kAlways = {"aten::detach", "aten::alias",    "aten::lift_fresh", "aten::lift_fresh_copy",
                                "aten::lift",   "aten::positive", "aten::detach_copy"};
constexpr std::array kDropouts = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout",
                                  "aten::feature_alpha_dropout"};
// Views and casts: identities where the type stays.
constexpr std::array kViews = {"aten::reshape",       "aten::expand",      "aten::flatten.using_ints",
                               "aten::squeeze",       "aten::squeeze.dim", "aten::squeeze.dims",
                               "aten::unflatten.int", "aten::expand_as",   "aten::broadcast_to",
                               "aten::view_as",       "aten::reshape_as"};
constexpr std::array kCasts = {"aten::to.dtype",  "aten::to.dtype_layout", "aten::_to_copy",
                               "aten::to.device", "aten::type_as",         "aten::to.other"};

bool is_one_of(const Node& node, const auto& names) {
  return std::find(names.begin(), names.end(), node.op.name()) != names.end();
}

// x + 0 and x * 1 change no number, but may change dtype or sizes: the types must agree. -0.0 + 0 is 0, which no reader
// but a division or a sign can tell.
bool is_neutral(const Rewriter& rewriter, const Node& node, const Argument& other) {
  const std::optional<double> value = constant_number(rewriter, other);
  if (!value) return false;
  if (node.is("aten::add.Tensor") || node.is("aten::sub.Tensor")) return *value == 0;
  return *value == 1;
}

bool keeps_type(Rewriter& rewriter, const Node& node, const Argument& input) {
  const ValueType& before = rewriter.type_of(input);
  return before.kind == ValueKind::tensor && before.sized && before == rewriter.type_of(node.result());
}

// x + 0, 0 + x, x - 0, x * 1, 1 * x, x / 1, x ** 1: the side that is returned.
std::optional<Argument> find_neutral(Rewriter& rewriter, const Node& node) {
  const bool commutes = node.is("aten::add.Tensor") || node.is("aten::mul.Tensor");
  if (!commutes && !node.is("aten::sub.Tensor") && !node.is("aten::div.Tensor") &&
      !node.is("aten::pow.Tensor_Scalar")) {
    return std::nullopt;
  }
  const Argument self = rewriter.resolve(node.arguments[0]), other = rewriter.resolve(node.arguments[1]);
  if (is_neutral(rewriter, node, other) && keeps_type(rewriter, node, self)) return self;
  if (!commutes || !has_unit_alpha(node)) return std::nullopt;
  if (is_neutral(rewriter, node, self) && keeps_type(rewriter, node, other)) return other;
  return std::nullopt;
}

bool stays_on_processor(const Node& node) {
  const int device = node.op.argument_index("device");
  if (device < 0 || !node.op.has_schema()) return true;
  const Argument& value = node.arguments[static_cast<size_t>(device)];
  return value.is_none() || value == Argument(Device{"cpu"});
}

bool all_are(const Argument& list, int64_t number) {
  const auto items = literal_ints(list);
  return items && std::all_of(items->begin(), items->end(), [&](int64_t item) { return item == number; });
}

std::optional<Argument> find_same(Rewriter& rewriter, const Node& node) {
  const Argument& input = node.arguments.front();
  if (is_one_of(node, kAlways)) return input;
  if (node.is("aten::copy") && node.arguments[1].is_value()) {
    const Argument source = rewriter.resolve(node.arguments[1]);
    return keeps_type(rewriter, node, source) ? std::optional(source) : std::nullopt;
  }
  // Only complex tensors put a conjugate off until its elements are read; view_as_real() refuses to.
  if (node.is("aten::resolve_conj")) {
    const ValueType& type = rewriter.type_of(rewriter.resolve(input));
    return type.kind == ValueKind::tensor && (is_floating(type.dtype) || is_integral(type.dtype)) ? std::optional(input)
                                                                                                  : std::nullopt;
  }
  const bool dropout = is_one_of(node, kDropouts);
  if (dropout || node.is("aten::native_dropout")) {
    const bool off = node.argument("train") == Argument(false) || node.argument("p") == Argument(0.0);
    return off ? std::optional(input) : std::nullopt;
  }
  if (node.is("aten::cat") && input.is_list() && input.list().size() == 1) return input.list().front();
  if (node.is("aten::constant_pad_nd") || node.is("aten::pad")) {
    return all_are(node.argument("pad"), 0) ? std::optional(input) : std::nullopt;
  }
  const bool whole_slice = node.is("aten::slice.Tensor") && node.argument("step") == Argument(1);
  const bool view = is_one_of(node, kViews) || (is_one_of(node, kCasts) && stays_on_processor(node)) || whole_slice;
  if (view && keeps_type(rewriter, node, rewriter.resolve(input))) return input;
  return find_neutral(rewriter, node);
}

}  // namespace

int remove_identities(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (!node.op.has_schema() || node.results.empty() || node.arguments.empty()) continue;
    const bool single = node.results.size() == 1 || node.is("aten::native_dropout");
    if (!single || node.results[0] == ValueId::none) continue;
    if (node.results.size() == 2 && node.results[1] != ValueId::none && rewriter.use_count(node.results[1]) > 0)
      continue;
    const std::optional<Argument> same = find_same(rewriter, node);
    if (same && same->is_value()) rewriter.replace_value(node.result(), *same);
  }
  return rewriter.finish();
}

}  // namespace lissome
