#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

struct Product {
  Argument input;      // [..., K]
  at::Tensor weight;   // [K, N] as multiplied
};

// The constant [K, N] right side of a product, looked for through a permute of a weight.
at::Tensor find_right_side(Rewriter& rewriter, const Argument& argument) {
  at::Tensor tensor = constant_tensor(rewriter.program(), rewriter.resolve(argument));
  if (!tensor.defined() || tensor.dim() != 2 || !tensor.is_floating_point()) return {};
  return tensor;
}

std::optional<size_t> find_rank(const Program& program, const Argument& argument) {
  if (!argument.is_value() || !program.value(argument.value()).type.sized) return std::nullopt;
  return program.value(argument.value()).type.sizes.size();
}

std::optional<Product> read_product(Rewriter& rewriter, const Node& node) {
  std::string_view right;
  if (node.is("aten::matmul")) right = "other";
  if (node.is("aten::mm")) right = "mat2";
  if (right.empty()) return std::nullopt;
  const Argument input = node.argument("self");
  const std::optional<size_t> rank = find_rank(rewriter.program(), input);
  if (!rank || *rank < 1) return std::nullopt;
  const at::Tensor weight = find_right_side(rewriter, node.argument(right));
  if (!weight.defined()) return std::nullopt;
  return Product{input, weight};
}

// linear wants [N, K]: stored so, once.
ValueId add_transposed(Program& program, const at::Tensor& weight, const Node& node) {
  const std::string name = "linear." + program.value(node.result()).name + ".weight";
  return program.add_weight(name, weight.t().contiguous(), WeightRole::constant);
}

bool convert_addmm(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::addmm")) return false;
  if (constant_number(rewriter.program(), node.argument("beta")) != 1.0) return false;
  if (constant_number(rewriter.program(), node.argument("alpha")) != 1.0) return false;
  const at::Tensor weight = find_right_side(rewriter, node.argument("mat2"));
  const std::optional<size_t> bias_rank = find_rank(rewriter.program(), node.argument("self"));
  if (!weight.defined() || bias_rank != 1u) return false;
  const ValueId transposed = add_transposed(rewriter.program(), weight, node);
  rewriter.replace_node(position, Op::find("aten::linear"), {node.argument("mat1"), transposed, node.argument("self")});
  return true;
}

bool convert_product(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  const std::optional<Product> product = read_product(rewriter, node);
  if (!product) return false;
  const ValueId transposed = add_transposed(rewriter.program(), product->weight, node);
  rewriter.replace_node(position, Op::find("aten::linear"), {product->input, transposed, Argument()});
  return true;
}

// linear without bias, read only by an addition of a constant vector over its last dimension.
bool add_bias(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::add.Tensor") || constant_number(rewriter.program(), node.argument("alpha")) != 1.0) return false;
  for (const bool swapped : {false, true}) {
    const Argument product = rewriter.resolve(node.argument(swapped ? "other" : "self"));
    const Argument bias = rewriter.resolve(node.argument(swapped ? "self" : "other"));
    const Node* linear = rewriter.producer(product, "aten::linear");
    if (linear == nullptr || !linear->argument("bias").is_none() || !rewriter.has_one_use(linear->result())) continue;
    const at::Tensor vector = constant_tensor(rewriter.program(), bias);
    const at::Tensor weight = constant_tensor(rewriter.program(), rewriter.resolve(linear->argument("weight")));
    if (!vector.defined() || !weight.defined() || vector.dim() != 1 || vector.size(0) != weight.size(0)) continue;
    if (vector.scalar_type() != weight.scalar_type()) continue;
    rewriter.replace_node(position, linear->op, {linear->argument("input"), linear->argument("weight"), bias});
    return true;
  }
  return false;
}

}  // namespace

int fuse_matmul_add(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    convert_addmm(rewriter, position) || convert_product(rewriter, position) || add_bias(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
