// Layer norm (Ba, Kiros, Hinton 2016) written out: (x - mean) / sqrt(variance + eps), with a weight on the numerator or
// behind, then perhaps a bias. The mean must be over trailing dimensions and the variance the biased one.
#include "lissome/pass/norm/match_norm.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

// The results of var_mean over trailing dimensions of x; dimensions 0 when it is something else.
struct VarianceAndMean {
  ValueId variance = ValueId::none, mean = ValueId::none;
  int64_t dimensions = 0;
};

bool is_biased(Rewriter& rewriter, const Node& node) {
  if (node.op.argument_index("unbiased") >= 0) return node.argument("unbiased") == Argument(false);
  return constant_number(rewriter, node.argument("correction")) == 0.0;
}

VarianceAndMean read_var_mean(Rewriter& rewriter, ValueId value, ValueId x) {
  const Node* node = rewriter.producer(value);
  if (node == nullptr || (!node->is("aten::var_mean.correction") && !node->is("aten::var_mean.dim"))) return {};
  if (!is_biased(rewriter, *node) || rewriter.resolve(node->argument("self")) != rewriter.resolve(Argument(x)))
    return {};
  return {node->results[0], node->results[1],
          count_trailing(rewriter, node->argument("dim"), node->argument("keepdim"), x)};
}

struct Centered {
  ValueId input = ValueId::none;
  int64_t dimensions = 0;  // trailing ones that are normalized over
};

// x - mean(x).
std::optional<Centered> match_centered(Rewriter& rewriter, ValueId value) {
  const Node* difference = rewriter.producer(Argument(value), "aten::sub.Tensor");
  if (difference == nullptr || !has_unit_alpha(*difference)) return {};
  const ValueId input = rewriter.resolve(difference->argument("self")).value();
  const ValueId mean = rewriter.resolve(difference->argument("other")).value();
  if (input == ValueId::none || mean == ValueId::none) return {};
  int64_t dimensions = match_mean(rewriter, mean, input);
  if (dimensions == 0) {
    const VarianceAndMean both = read_var_mean(rewriter, mean, input);
    if (both.mean == mean) dimensions = both.dimensions;
  }
  return dimensions > 0 ? std::optional(Centered{input, dimensions}) : std::nullopt;
}

// mean((x - mean)^2), var(x, unbiased=False) or that of var_mean.
bool is_variance(Rewriter& rewriter, ValueId value, const Centered& centered) {
  const Node* node = rewriter.producer(value);
  if (node == nullptr) return false;
  if (node->is("aten::var.correction") || node->is("aten::var.dim")) {
    return is_biased(rewriter, *node) && same_value(rewriter, node->argument("self").value(), centered.input) &&
           count_trailing(rewriter, node->argument("dim"), node->argument("keepdim"), centered.input) ==
               centered.dimensions;
  }
  if (const VarianceAndMean both = read_var_mean(rewriter, value, centered.input); both.dimensions > 0) {
    return both.variance == value && both.dimensions == centered.dimensions;
  }
  if (!node->is("aten::mean.dim") || !node->argument("self").is_value()) return false;
  const ValueId squares = rewriter.resolve(node->argument("self")).value();
  if (match_mean(rewriter, value, squares) != centered.dimensions) return false;
  const auto base = match_square(rewriter, squares);
  const auto again = base ? match_centered(rewriter, *base) : std::nullopt;
  return again && same_value(rewriter, again->input, centered.input) && again->dimensions == centered.dimensions;
}

bool rewrite_centered_quotient(Rewriter& rewriter, int position, const RootQuotient& quotient,
                               const Weighted& numerator) {
  const auto centered = match_centered(rewriter, numerator.value);
  if (!centered || !is_variance(rewriter, quotient.value, *centered)) return false;
  const auto shape = find_normalized_shape(rewriter, centered->input, centered->dimensions);
  if (!shape || !fits_shape(rewriter, numerator.weight, *shape)) return false;
  if (!is_closed(rewriter, rewriter.node(position), {centered->input})) return false;
  rewriter.replace_node(position, Op::find("aten::layer_norm"),
                        {centered->input, *shape, numerator.weight, Argument(), quotient.epsilon, false});
  return true;
}

bool rewrite_layer_norm(Rewriter& rewriter, int position) {
  for (const RootQuotient& quotient : match_root_quotient(rewriter, rewriter.node(position))) {
    for (const Weighted& numerator : match_weighted(rewriter, quotient.numerator)) {
      if (rewrite_centered_quotient(rewriter, position, quotient, numerator)) return true;
    }
  }
  return false;
}

// layer_norm * weight, then + bias.
bool absorb_affine(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  const auto affine = match_affine(rewriter, node, "aten::layer_norm");
  if (!affine) return false;
  const Node& norm = affine->norm;
  const bool scales = node.is("aten::mul.Tensor");
  if (!norm.argument("bias").is_none() || (scales && !norm.argument("weight").is_none())) return false;
  rewriter.replace_node(
      position, norm.op,
      {norm.argument("input"), norm.argument("normalized_shape"), scales ? affine->constant : norm.argument("weight"),
       scales ? Argument() : affine->constant, norm.argument("eps"), norm.argument("cudnn_enable")});
  return true;
}

}  // namespace

int fuse_layer_norm(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    absorb_affine(rewriter, position) || rewrite_layer_norm(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
