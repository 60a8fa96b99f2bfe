// bf16 products whose weights are computed, as in mixed-precision training, take the casts around them in: f32 weights
// are rounded as they are read, and results leave as the f32 that their only reader wants.
#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

bool is_tensor_of(const ValueType& type, Dtype dtype) {
  return type.kind == ValueKind::tensor && type.sized && type.dtype == dtype;
}

// A product as linear_bf16 has it; the weight of mm is still [inputs, outputs].
struct Product {
  Argument x, weight, bias, residual;
  Argument act = std::string("none");
  bool turned = false;
};

std::optional<Product> read_product(const Rewriter& rewriter, const Node& node) {
  if (node.results.size() != 1 || !is_tensor_of(rewriter.type_of(node.result()), Dtype::bf16)) return {};
  Product product;
  if (node.is("aten::mm")) {
    product.x = node.argument("self"), product.weight = node.argument("mat2"), product.turned = true;
  } else if (node.is("aten::linear")) {
    product.x = node.argument("input"), product.weight = node.argument("weight"), product.bias = node.argument("bias");
  } else if (node.is("lissome::linear_act")) {
    product.x = node.argument("x"), product.weight = node.argument("weight"), product.bias = node.argument("bias");
    product.act = node.argument("act"), product.residual = node.argument("residual");
  } else {
    return {};
  }
  for (Argument* argument : {&product.x, &product.weight, &product.bias, &product.residual}) {
    *argument = rewriter.resolve(*argument);
    if (argument->is_value() && !is_tensor_of(rewriter.type_of(*argument), Dtype::bf16)) return {};
  }
  // Those that stay the same are cast and packed ahead of time.
  if (rewriter.is_constant(product.weight.value()) || rewriter.type_of(product.weight).sizes.size() != 2) return {};
  return product;
}

// The f32 that a cast to bf16 rounds, where reading it instead keeps nothing alive for longer: a weight, or what
// nothing else reads as bf16.
bool fold_operand(Rewriter& rewriter, Argument& operand) {
  const Node* cast = operand.is_value() ? rewriter.producer(operand, "aten::to.dtype") : nullptr;
  if (cast == nullptr || !cast->argument("memory_format").is_none()) return false;
  const Argument source = rewriter.resolve(cast->argument("self"));
  if (!is_tensor_of(rewriter.type_of(source), Dtype::f32) || rewriter.is_constant(source.value())) return false;
  if (rewriter.producer(source.value()) != nullptr && !rewriter.has_one_use(cast->result())) return false;
  operand = source;
  return true;
}

bool is_view(const Node& node) {
  return node.is("aten::reshape") || node.is("aten::permute") || node.is("aten::transpose.int");
}

// What reads the result of a product alone and makes f32 of it: a cast, behind views or not, or the addition of an f32
// value of the same sizes.
struct Reader {
  int position = -1;
  std::vector<int> views;
  Argument added;
};

std::optional<Reader> find_reader(Rewriter& rewriter, const Node& product) {
  Reader found;
  found.position = rewriter.only_reader(product.result());
  while (found.position >= 0 && is_view(rewriter.node(found.position))) {
    found.views.push_back(found.position);
    found.position = rewriter.only_reader(rewriter.node(found.position).result());
  }
  if (found.position < 0) return {};
  const Node& reader = rewriter.node(found.position);
  if (reader.results.size() != 1 || !is_tensor_of(rewriter.type_of(reader.result()), Dtype::f32)) return {};
  if (reader.is("aten::to.dtype"))
    return reader.argument("memory_format").is_none() ? std::optional(found) : std::nullopt;
  if (!reader.is("aten::add.Tensor") || !found.views.empty() || reader.argument("alpha") != Argument(int64_t{1}))
    return {};
  const Argument left = rewriter.resolve(reader.argument("self")), right = rewriter.resolve(reader.argument("other"));
  found.added = left == Argument(product.result()) ? right : left;
  if (!found.added.is_value()) return {};
  const ValueType& type = rewriter.type_of(found.added);
  if (!is_tensor_of(type, Dtype::f32) || type.sizes != rewriter.type_of(product.result()).sizes) return {};
  return found;
}

// [inputs, outputs] as [outputs, inputs].
Argument turn(Rewriter& rewriter, int position, const Argument& matrix) {
  const Node* permute = rewriter.producer(matrix, "aten::permute");
  if (permute != nullptr && literal_ints(permute->argument("dims")) == std::vector<int64_t>{1, 0})
    return rewriter.resolve(permute->argument("self"));
  const ValueType& type = rewriter.type_of(matrix);
  const std::vector<int64_t> order = {1, 0};
  return rewriter.insert_before(position, Op::find("aten::permute"), {matrix, ArgumentList(order.begin(), order.end())},
                                {tensor_type(type.dtype, {type.sizes[1], type.sizes[0]})}, nullptr);
}

ArgumentList make_arguments(Rewriter& rewriter, int position, const Product& product, Dtype dtype) {
  const Argument weight = product.turned ? turn(rewriter, position, product.weight) : product.weight;
  return {product.x, weight, product.bias, product.act, product.residual, dtype};
}

// The product becomes f32 in front of the views, and the last of them takes the place of the cast.
void move_views(Rewriter& rewriter, const Node& node, const Product& product, const Reader& reader) {
  const Op op = Op::find("lissome::linear_bf16");
  const ValueType type = tensor_type(Dtype::f32, rewriter.type_of(node.result()).sizes);
  Argument value = rewriter.insert_before(
      reader.position, op, make_arguments(rewriter, reader.position, product, Dtype::f32), {type}, node.origin);
  for (size_t i = 0; i < reader.views.size(); ++i) {
    const Node view = rewriter.node(reader.views[i]);
    ArgumentList arguments = view.arguments;
    arguments.front() = value;
    if (i + 1 == reader.views.size()) {
      rewriter.replace_node(reader.position, view.op, std::move(arguments));
      return;
    }
    const ValueType wide = tensor_type(Dtype::f32, rewriter.type_of(view.result()).sizes);
    value = rewriter.insert_before(reader.position, view.op, std::move(arguments), {wide}, view.origin);
  }
}

void fold_casts(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  std::optional<Product> product = read_product(rewriter, node);
  if (!product) return;
  bool folds = fold_operand(rewriter, product->x);
  folds = fold_operand(rewriter, product->weight) || folds;
  folds = fold_operand(rewriter, product->bias) || folds;
  std::optional<Reader> reader = product->residual.is_none() ? find_reader(rewriter, node) : std::nullopt;
  if (reader && !reader->added.is_none() && product->act != Argument(std::string("none"))) reader.reset();
  const Op op = Op::find("lissome::linear_bf16");
  if (!reader) {
    if (folds) rewriter.replace_node(position, op, make_arguments(rewriter, position, *product, Dtype::bf16));
    return;
  }
  if (!reader->views.empty()) return move_views(rewriter, node, *product, *reader);
  product->residual = reader->added;
  rewriter.replace_node(reader->position, op, make_arguments(rewriter, reader->position, *product, Dtype::f32));
}

}  // namespace

int fold_product_casts(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) fold_casts(rewriter, position);
  return rewriter.finish();
}

}  // namespace lissome
