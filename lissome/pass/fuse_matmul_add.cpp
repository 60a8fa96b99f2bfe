// Products with constant weights, and with any weight and a bias, become linear, with the bias that is added to them.
// The decomposed dialect flattens the rows before each product; a linear takes them as they are, so the flattening
// moves behind it, where it meets the reshape that undoes it.
#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

// The constant [K, N] right side of a product.
at::Tensor find_right_side(Rewriter& rewriter, const Argument& argument) {
  const at::Tensor tensor = constant_tensor(rewriter, rewriter.resolve(argument));
  if (!tensor.defined() || tensor.dim() != 2 || !tensor.is_floating_point()) return {};
  return tensor;
}

// linear wants [N, K]: stored so, once.
ValueId add_transposed(Rewriter& rewriter, const Argument& right_side, const at::Tensor& weight) {
  const std::string& name = name_of_weight(rewriter.program(), rewriter.resolve(right_side));
  return add_constant(rewriter.program(), name + ".transposed", weight.t().contiguous());
}

// [K, N] computed, as in training, as [N, K]: what it was permuted from, or permuted.
Argument find_computed(Rewriter& rewriter, int position, const Argument& right_side) {
  const Node* permute = rewriter.producer(right_side, "aten::permute");
  const ValueType& type = rewriter.type_of(right_side);
  if (permute != nullptr && literal_ints(permute->argument("dims")) == std::vector<int64_t>{1, 0})
    return permute->argument("self");
  const std::vector<int64_t> order = {1, 0};
  return rewriter.insert_before(position, Op::find("aten::permute"),
                                {right_side, ArgumentList(order.begin(), order.end())},
                                {tensor_type(type.dtype, {type.sizes[1], type.sizes[0]})}, nullptr);
}

bool convert_computed_addmm(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  const ValueType &bias = rewriter.type_of(node.argument("self")), &weight = rewriter.type_of(node.argument("mat2"));
  if (!is_sized_float(bias) || !is_sized_float(weight) || bias.sizes.size() != 1 || weight.sizes.size() != 2)
    return false;
  if (!(bias.sizes[0] == weight.sizes[1])) return false;
  const Argument x = node.argument("mat1"), vector = node.argument("self");
  const Argument transposed = find_computed(rewriter, position, node.argument("mat2"));
  rewriter.replace_node(position, Op::find("aten::linear"), {x, transposed, vector});
  return true;
}

bool convert_addmm(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::addmm")) return false;
  if (constant_number(rewriter, node.argument("beta")) != 1.0) return false;
  if (constant_number(rewriter, node.argument("alpha")) != 1.0) return false;
  if (!find_right_side(rewriter, node.argument("mat2")).defined()) return convert_computed_addmm(rewriter, position);
  const at::Tensor weight = find_right_side(rewriter, node.argument("mat2"));
  const at::Tensor bias = constant_tensor(rewriter, rewriter.resolve(node.argument("self")));
  if (!bias.defined() || bias.dim() != 1 || bias.size(0) != weight.size(1)) return false;
  const ValueId transposed = add_transposed(rewriter, node.argument("mat2"), weight);
  rewriter.replace_node(position, Op::find("aten::linear"), {node.argument("mat1"), transposed, node.argument("self")});
  return true;
}

bool convert_product(Rewriter& rewriter, int position) {
  const Node& node = rewriter.node(position);
  if (!node.is("aten::matmul") && !node.is("aten::mm")) return false;
  const Argument right_side = node.arguments.at(1);
  const ValueType& input = rewriter.type_of(node.argument("self"));
  const at::Tensor weight = find_right_side(rewriter, right_side);
  if (!weight.defined() || !is_sized_float(input) || input.sizes.empty()) return false;
  if (scalar_type_of(input.dtype) != weight.scalar_type()) return false;
  const ValueId transposed = add_transposed(rewriter, right_side, weight);
  rewriter.replace_node(position, Op::find("aten::linear"), {node.argument("self"), transposed, Argument()});
  return true;
}

// A constant that adds one number to each output channel and enlarges nothing: as a vector.
at::Tensor read_bias(const at::Tensor& constant, int64_t channels, size_t rank) {
  if (!constant.defined() || constant.numel() != channels || constant.dim() == 0) return {};
  if (constant.size(-1) != channels || static_cast<size_t>(constant.dim()) > rank) return {};
  return constant.reshape({channels});
}

// linear without bias, read only by an addition of a constant over its last dimension.
bool add_bias(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  const auto sum = node.results.size() == 1 ? match_sum(rewriter, Argument(node.result())) : std::nullopt;
  if (!sum) return false;
  for (const auto& [product, other] : {*sum, std::pair{sum->second, sum->first}}) {
    const Node* linear = rewriter.producer(Argument(product), "aten::linear");
    if (linear == nullptr || !linear->argument("bias").is_none() || !rewriter.has_one_use(product)) continue;
    const ValueType& type = rewriter.type_of(product);
    const at::Tensor weight = constant_tensor(rewriter, rewriter.resolve(linear->argument("weight")));
    const at::Tensor constant = constant_tensor(rewriter, Argument(other));
    if (!weight.defined() || !type.sized || rewriter.type_of(node.result()) != type) continue;
    const at::Tensor bias = read_bias(constant, weight.size(0), type.sizes.size());
    if (!bias.defined() || bias.scalar_type() != weight.scalar_type()) continue;
    ValueId vector = other;
    if (constant.dim() != 1) {
      vector = add_constant(rewriter.program(), name_of_weight(rewriter.program(), Argument(other)) + ".vector", bias);
    }
    rewriter.replace_node(position, linear->op, {linear->argument("input"), linear->argument("weight"), vector});
    return true;
  }
  return false;
}

// linear(reshape(x, [rows, K])) -> reshape(linear(x), [rows, N]), where only another reshape reads it.
bool move_flattening(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!node.is("aten::linear")) return false;
  const Node* flattening = rewriter.producer(node.argument("input"), "aten::reshape");
  const int reader = rewriter.only_reader(node.result());
  if (flattening == nullptr || reader < 0 || !rewriter.node(reader).is("aten::reshape")) return false;
  const Argument source = rewriter.resolve(flattening->argument("self"));
  const ValueType &before = rewriter.type_of(source), &flat = rewriter.type_of(flattening->result());
  const ValueType result = rewriter.type_of(node.result());
  if (!before.sized || !flat.sized || !result.sized || before.sizes.size() < 2 || flat.sizes.size() != 2) return false;
  if (!(before.sizes.back() == flat.sizes.back())) return false;
  ValueType wide = before;
  wide.sizes.back() = result.sizes.back();
  const auto shape = literal_sizes(result.sizes);
  if (!shape) return false;
  const ValueId product = rewriter.insert_before(
      position, node.op, {source, node.argument("weight"), node.argument("bias")}, {wide}, node.origin);
  rewriter.replace_node(position, Op::find("aten::reshape"), {product, *shape});
  return true;
}

}  // namespace

int fuse_matmul_add(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    convert_addmm(rewriter, position) || convert_product(rewriter, position) || add_bias(rewriter, position);
  }
  const int rewrites = rewriter.finish();
  Rewriter again(program);
  for (int position = 0; position < again.node_count(); ++position) move_flattening(again, position);
  return rewrites + again.finish();
}

}  // namespace lissome
