// Layer norm (Ba, Kiros, Hinton 2016) written out: (x - mean) / sqrt(variance + eps), then perhaps weight and bias. The
// mean must be over trailing dimensions and the variance the biased one.
#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

struct Normalized {
  ValueId input = ValueId::none;
  int64_t dimensions = 0;  // trailing dimensions normalized over
  double epsilon = 0;
};

// Trailing dimensions that a reduction with keepdim covers, 0 when it is something else.
int64_t count_trailing(const Program& program, const Argument& dims, const Argument& keep, ValueId input) {
  const auto list = literal_ints(dims);
  const ValueType& type = program.value(input).type;
  if (!list || list->empty() || keep != Argument(true) || !type.sized) return 0;
  const auto rank = static_cast<int64_t>(type.sizes.size());
  std::vector<bool> covered(static_cast<size_t>(rank), false);
  for (int64_t dim : *list) covered.at(static_cast<size_t>(dim < 0 ? dim + rank : dim)) = true;
  const auto count = static_cast<int64_t>(list->size());
  for (int64_t i = 0; i < rank; ++i) {
    if (covered[static_cast<size_t>(i)] != (i >= rank - count)) return 0;
  }
  return count;
}

int64_t match_mean(Rewriter& rewriter, ValueId value, ValueId input) {
  const Node* mean = rewriter.producer(Argument(value), "aten::mean.dim");
  if (mean == nullptr || !mean->argument("dtype").is_none()) return 0;
  if (!same_value(rewriter, mean->argument("self").value(), input)) return 0;
  return count_trailing(rewriter.program(), mean->argument("dim"), mean->argument("keepdim"), input);
}

// The input and dimensions of x - mean(x).
std::optional<Normalized> match_centered(Rewriter& rewriter, ValueId value) {
  const Node* difference = rewriter.producer(Argument(value), "aten::sub.Tensor");
  if (difference == nullptr || constant_number(rewriter.program(), difference->argument("alpha")) != 1.0) return {};
  const Argument input = rewriter.resolve(difference->argument("self"));
  const Argument mean = rewriter.resolve(difference->argument("other"));
  if (!input.is_value() || !mean.is_value()) return {};
  const int64_t dimensions = match_mean(rewriter, mean.value(), input.value());
  if (dimensions == 0) return {};
  return Normalized{input.value(), dimensions, 0};
}

// mean((x - mean)^2) or var(x, unbiased=False).
bool match_variance(Rewriter& rewriter, ValueId value, const Normalized& norm) {
  const Node* node = rewriter.producer(value);
  if (node == nullptr) return false;
  const Program& program = rewriter.program();
  if (node->is("aten::var.correction") || node->is("aten::var.dim")) {
    const bool biased = node->is("aten::var.dim") ? node->argument("unbiased") == Argument(false)
                                                  : constant_number(program, node->argument("correction")) == 0.0;
    return biased && same_value(rewriter, node->argument("self").value(), norm.input) &&
           count_trailing(program, node->argument("dim"), node->argument("keepdim"), norm.input) == norm.dimensions;
  }
  if (!node->is("aten::mean.dim") || !node->argument("dtype").is_none()) return false;
  const Argument square = rewriter.resolve(node->argument("self"));
  if (!square.is_value()) return false;
  if (count_trailing(program, node->argument("dim"), node->argument("keepdim"), norm.input) != norm.dimensions) return false;
  const auto is_centered = [&](ValueId candidate) {
    const auto centered = match_centered(rewriter, candidate);
    return centered && same_value(rewriter, centered->input, norm.input) && centered->dimensions == norm.dimensions;
  };
  if (const Node* power = rewriter.producer(square, "aten::pow.Tensor_Scalar")) {
    return constant_number(program, power->argument("exponent")) == 2.0 && power->argument("self").is_value() &&
           is_centered(power->argument("self").value());
  }
  const auto product = match_product(rewriter, square);
  return product && same_value(rewriter, product->first, product->second) && is_centered(product->first);
}

// variance + eps under sqrt; returns eps.
std::optional<double> match_root(Rewriter& rewriter, const Argument& argument, const Normalized& norm) {
  const auto offset = match_offset(rewriter, rewriter.resolve(argument));
  if (!offset || offset->number < 0 || !match_variance(rewriter, offset->value, norm)) return std::nullopt;
  return offset->number;
}

std::optional<Normalized> match_normalized(Rewriter& rewriter, const Node& node) {
  // centered / sqrt(variance + eps)
  if (node.is("aten::div.Tensor")) {
    auto norm = match_centered(rewriter, rewriter.resolve(node.argument("self")).value());
    const Node* root = rewriter.producer(node.argument("other"), "aten::sqrt");
    if (!norm || root == nullptr) return {};
    const auto epsilon = match_root(rewriter, root->argument("self"), *norm);
    if (!epsilon) return {};
    norm->epsilon = *epsilon;
    return norm;
  }
  // centered * rsqrt(variance + eps)
  if (!node.is("aten::mul.Tensor")) return {};
  const auto product = match_product(rewriter, Argument(node.result()));
  if (!product) return {};
  for (const auto& [left, right] : {*product, std::pair{product->second, product->first}}) {
    auto norm = match_centered(rewriter, left);
    const Node* root = rewriter.producer(Argument(right), "aten::rsqrt");
    if (!norm || root == nullptr) continue;
    const auto epsilon = match_root(rewriter, root->argument("self"), *norm);
    if (!epsilon) continue;
    norm->epsilon = *epsilon;
    return norm;
  }
  return {};
}

std::optional<ArgumentList> find_normalized_shape(const Program& program, const Normalized& norm) {
  const ValueType& type = program.value(norm.input).type;
  ArgumentList shape;
  for (size_t i = type.sizes.size() - static_cast<size_t>(norm.dimensions); i < type.sizes.size(); ++i) {
    const auto size = type.sizes[i].constant();
    if (!size) return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}

// layer_norm * weight and layer_norm + bias, for constants of exactly the normalized shape.
bool absorb_affine(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  const bool scales = node.is("aten::mul.Tensor");
  if (!scales && !node.is("aten::add.Tensor")) return false;
  if (!scales && constant_number(rewriter.program(), node.argument("alpha")) != 1.0) return false;
  for (const bool swapped : {false, true}) {
    const Argument norm = rewriter.resolve(node.argument(swapped ? "other" : "self"));
    const Argument factor = rewriter.resolve(node.argument(swapped ? "self" : "other"));
    const Node* inner = rewriter.producer(norm, "aten::layer_norm");
    if (inner == nullptr || !rewriter.has_one_use(inner->result())) continue;
    const at::Tensor tensor = constant_tensor(rewriter.program(), factor);
    const auto shape = literal_ints(inner->argument("normalized_shape"));
    if (!tensor.defined() || !shape || tensor.sizes().vec() != *shape) continue;
    if (tensor.scalar_type() != scalar_type_of(rewriter.program().value(inner->result()).type.dtype)) continue;
    if (!inner->argument("bias").is_none() || (scales && !inner->argument("weight").is_none())) continue;
    rewriter.replace_node(position, inner->op,
                          {inner->argument("input"), inner->argument("normalized_shape"),
                           scales ? factor : inner->argument("weight"), scales ? Argument() : factor,
                           inner->argument("eps"), inner->argument("cudnn_enable")});
    return true;
  }
  return false;
}

}  // namespace

int fuse_layer_norm(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    if (absorb_affine(rewriter, position)) continue;
    const Node& node = rewriter.node(position);
    if (node.results.size() != 1 || !program.value(node.result()).type.sized) continue;
    const auto norm = match_normalized(rewriter, node);
    if (!norm) continue;
    if (const auto shape = find_normalized_shape(program, *norm)) {
      rewriter.replace_node(position, Op::find("aten::layer_norm"),
                            {norm->input, *shape, Argument(), Argument(), norm->epsilon, false});
    }
  }
  return rewriter.finish();
}

}  // namespace lissome
