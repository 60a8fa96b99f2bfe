#include <array>
#include <algorithm>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

constexpr std::array kAlways = {"aten::detach", "aten::alias", "aten::lift_fresh", "aten::lift_fresh_copy",
                                "aten::lift", "aten::positive", "aten::resolve_conj", "aten::resolve_neg"};
constexpr std::array kDropouts = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout",
                                  "aten::feature_alpha_dropout"};

bool is_one_of(const Node& node, const auto& names) {
  return std::find(names.begin(), names.end(), node.op.name()) != names.end();
}

// x + 0 and x * 1 change no number, but may change dtype or broadcast: the types must agree.
bool is_neutral(const Program& program, const Node& node) {
  const auto number = [&](std::string_view name) { return constant_number(program, node.argument(name)); };
  const bool literal = node.is("aten::add.Tensor") || node.is("aten::sub.Tensor") || node.is("aten::mul.Tensor") ||
                       node.is("aten::div.Tensor") || node.is("aten::add.Scalar") || node.is("aten::mul.Scalar") ||
                       node.is("aten::sub.Scalar") || node.is("aten::div.Scalar") || node.is("aten::pow.Tensor_Scalar");
  if (!literal) return false;
  const std::string_view other = node.is("aten::pow.Tensor_Scalar") ? "exponent" : "other";
  const std::optional<double> value = number(other);
  if (!value) return false;
  const bool additive = node.op.name().starts_with("aten::add") || node.op.name().starts_with("aten::sub");
  // -0.0 + 0 is 0, which no reader but a division or a sign can tell; adding -0.0 or subtracting 0 is exact.
  return additive ? *value == 0 : *value == 1;
}

bool keeps_type(const Program& program, const Node& node, const Argument& input) {
  if (!input.is_value()) return false;
  const ValueType& before = program.value(input.value()).type;
  const ValueType& after = program.value(node.result()).type;
  return before.kind == ValueKind::tensor && before.sized && before == after;
}

// reshape, expand, to and slices that change nothing.
bool is_plain_view(const Program& program, const Node& node) {
  static constexpr std::array kViews = {"aten::reshape", "aten::view",         "aten::_unsafe_view", "aten::expand",
                                        "aten::flatten.using_ints", "aten::squeeze.dim", "aten::unflatten.int"};
  if (is_one_of(node, kViews)) return keeps_type(program, node, node.arguments.front());
  static constexpr std::array kCasts = {"aten::to.dtype", "aten::to.dtype_layout", "aten::_to_copy", "aten::to.device",
                                        "aten::type_as", "aten::to.other"};
  if (is_one_of(node, kCasts)) {
    const int device = node.op.argument_index("device");
    const bool moves = device >= 0 && !node.arguments[static_cast<size_t>(device)].is_none() &&
                       node.arguments[static_cast<size_t>(device)] != Argument(Device{"cpu"});
    return !moves && keeps_type(program, node, node.arguments.front());
  }
  if (!node.is("aten::slice.Tensor") || !keeps_type(program, node, node.arguments.front())) return false;
  return node.argument("step") == Argument(1);
}

bool is_identity(const Program& program, const Node& node) {
  if (!node.op.has_schema() || node.results.size() != 1 || node.arguments.empty()) return false;
  if (is_one_of(node, kAlways)) return true;
  if (is_one_of(node, kDropouts)) return node.argument("train") == Argument(false) || node.argument("p") == Argument(0.0);
  if (is_neutral(program, node)) return keeps_type(program, node, node.arguments.front());
  return is_plain_view(program, node);
}

}  // namespace

int remove_identities(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (is_identity(program, node)) rewriter.replace_value(node.result(), node.arguments.front());
  }
  return rewriter.finish();
}

}  // namespace lissome
