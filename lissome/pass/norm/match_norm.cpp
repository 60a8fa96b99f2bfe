#include "lissome/pass/norm/match_norm.h"

namespace lissome {

int64_t count_trailing(Rewriter& rewriter, const Argument& dims, const Argument& keep, ValueId input) {
  const auto list = literal_ints(dims);
  const ValueType& type = rewriter.type_of(input);
  if (!list || list->empty() || keep != Argument(true) || !type.sized) return 0;
  const auto rank = static_cast<int64_t>(type.sizes.size());
  std::vector<bool> covered(static_cast<size_t>(rank), false);
  for (const int64_t dim : *list) covered.at(static_cast<size_t>(dim < 0 ? dim + rank : dim)) = true;
  const auto count = static_cast<int64_t>(list->size());
  for (int64_t i = 0; i < rank; ++i) {
    if (covered[static_cast<size_t>(i)] != (i >= rank - count)) return 0;
  }
  return count;
}

int64_t match_mean(Rewriter& rewriter, ValueId value, ValueId x) {
  const Node* mean = rewriter.producer(Argument(value), "aten::mean.dim");
  if (mean == nullptr || !is_sized_float(rewriter.type_of(x))) return 0;
  const Argument& dtype = mean->argument("dtype");
  if (!dtype.is_none() && dtype != Argument(rewriter.type_of(x).dtype)) return 0;
  if (rewriter.resolve(mean->argument("self")) != rewriter.resolve(Argument(x))) return 0;
  return count_trailing(rewriter, mean->argument("dim"), mean->argument("keepdim"), x);
}

std::optional<ValueId> match_square(Rewriter& rewriter, ValueId value) {
  if (const Node* power = rewriter.producer(Argument(value), "aten::pow.Tensor_Scalar")) {
    if (constant_number(rewriter, power->argument("exponent")) != 2.0) return std::nullopt;
    return rewriter.resolve(power->argument("self")).value();
  }
  const auto product = match_product(rewriter, Argument(value));
  return product && product->first == product->second ? std::optional(product->first) : std::nullopt;
}

std::vector<RootQuotient> match_root_quotient(Rewriter& rewriter, const Node& node) {
  std::vector<RootQuotient> found;
  const auto note = [&](const Argument& numerator, const Argument& root, std::string_view op) {
    const Node* made = rewriter.producer(rewriter.resolve(root), op);
    if (made == nullptr || !rewriter.resolve(numerator).is_value()) return;
    const auto offset = match_offset(rewriter, rewriter.resolve(made->argument("self")));
    if (!offset || offset->number < 0) return;
    found.push_back({rewriter.resolve(numerator).value(), offset->value, offset->number});
  };
  if (node.is("aten::div.Tensor")) note(node.argument("self"), node.argument("other"), "aten::sqrt");
  if (node.is("aten::mul.Tensor")) {
    note(node.argument("self"), node.argument("other"), "aten::rsqrt");
    note(node.argument("other"), node.argument("self"), "aten::rsqrt");
  }
  return found;
}

std::vector<Weighted> match_weighted(Rewriter& rewriter, ValueId numerator) {
  std::vector<Weighted> found = {{numerator, Argument()}};
  const auto product = match_product(rewriter, Argument(numerator));
  if (!product) return found;
  for (const auto& [value, constant] : {*product, std::pair{product->second, product->first}}) {
    const at::Tensor tensor = constant_tensor(rewriter, Argument(constant));
    const ValueType& type = rewriter.type_of(value);
    if (!tensor.defined() || type != rewriter.type_of(numerator)) continue;
    if (tensor.scalar_type() == scalar_type_of(type.dtype)) found.push_back({value, constant});
  }
  return found;
}

bool fits_shape(Rewriter& rewriter, const Argument& weight, const ArgumentList& shape) {
  if (weight.is_none()) return true;
  const at::Tensor tensor = constant_tensor(rewriter, weight);
  return tensor.defined() && tensor.sizes().vec() == literal_ints(shape);
}

std::optional<ArgumentList> find_normalized_shape(Rewriter& rewriter, ValueId value, int64_t count) {
  const ValueType& type = rewriter.type_of(value);
  ArgumentList shape;
  for (size_t i = type.sizes.size() - static_cast<size_t>(count); i < type.sizes.size(); ++i) {
    const auto size = type.sizes[i].constant();
    if (!size) return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}

std::optional<Affine> match_affine(Rewriter& rewriter, const Node& node, std::string_view op) {
  if ((!node.is("aten::mul.Tensor") && !node.is("aten::add.Tensor")) || !has_unit_alpha(node)) return std::nullopt;
  for (const bool swapped : {false, true}) {
    const Argument norm = rewriter.resolve(node.argument(swapped ? "other" : "self"));
    const Argument constant = rewriter.resolve(node.argument(swapped ? "self" : "other"));
    const Node* inner = rewriter.producer(norm, op);
    if (inner == nullptr || !rewriter.has_one_use(inner->result())) continue;
    const at::Tensor tensor = constant_tensor(rewriter, constant);
    const auto shape = literal_ints(inner->argument("normalized_shape"));
    if (!tensor.defined() || !shape || tensor.sizes().vec() != *shape) continue;
    const ValueType& type = rewriter.type_of(inner->result());
    if (tensor.scalar_type() != scalar_type_of(type.dtype) || rewriter.type_of(node.result()) != type) continue;
    return Affine{*inner, constant};
  }
  return std::nullopt;
}

}  // namespace lissome
