// A 1x1 convolution is a linear over channels. Where the image is one pixel, or where a permute brought the channels
// forward for it and the inverse takes them back, linear needs no move at all and has the better kernels. Where
// permutes stand around a linear over an image's channels, the convolution needs none. On other images the convolution
// stays: channels-last makes it the same product.
#include <algorithm>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

bool all_equal(const Argument& list, int64_t number) {
  const auto items = literal_ints(list);
  return items && std::all_of(items->begin(), items->end(), [&](int64_t item) { return item == number; });
}

// The constant weight [out, in, 1, ...] of a convolution that is a linear at each place; undefined otherwise.
at::Tensor read_pointwise(Rewriter& rewriter, const Node& node) {
  if (!node.is("aten::convolution") || node.argument("transposed") != Argument(false)) return {};
  if (node.argument("groups") != Argument(1) || !all_equal(node.argument("padding"), 0)) return {};
  const at::Tensor weight = constant_tensor(rewriter, rewriter.resolve(node.argument("weight")));
  if (!weight.defined() || weight.dim() < 3) return {};
  for (int64_t i = 2; i < weight.dim(); ++i) {
    if (weight.size(i) != 1) return {};
  }
  return weight;
}

Argument add_matrix(Rewriter& rewriter, const Node& conv, const at::Tensor& weight) {
  const std::string& name = name_of_weight(rewriter.program(), rewriter.resolve(conv.argument("weight")));
  return add_constant(rewriter.program(), name + ".matrix",
                      weight.reshape({weight.size(0), weight.size(1)}).contiguous());
}

// [N, C, 1, 1] or [N, C, 1]: one pixel.
bool has_one_pixel(const ValueType& type) {
  if (!type.sized || type.sizes.size() < 3) return false;
  return std::all_of(type.sizes.begin() + 2, type.sizes.end(), [](const Dimension& d) { return d == Dimension(1); });
}

bool convert_pixel(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  const at::Tensor weight = read_pointwise(rewriter, node);
  if (!weight.defined()) return false;
  const Argument input = rewriter.resolve(node.argument("input"));
  const ValueType before = rewriter.type_of(input), after = rewriter.type_of(node.result());
  if (!has_one_pixel(before) || !has_one_pixel(after)) return false;
  const Argument matrix = add_matrix(rewriter, node, weight);
  const ArgumentList flat = {-1, weight.size(1)};
  const ValueId rows =
      rewriter.insert_before(position, Op::find("aten::reshape"), {input, flat},
                             {tensor_type(before.dtype, {before.sizes[0], weight.size(1)})}, node.origin);
  const ValueId product =
      rewriter.insert_before(position, Op::find("aten::linear"), {rows, matrix, node.argument("bias")},
                             {tensor_type(after.dtype, {after.sizes[0], weight.size(0)})}, node.origin);
  ArgumentList shape = {-1, weight.size(0)};
  shape.resize(after.sizes.size(), Argument(1));
  rewriter.replace_node(position, Op::find("aten::reshape"), {product, shape});
  return true;
}

// permute or transpose that brings the last dimension to place 1, or takes it back.
bool moves_channels(Rewriter& rewriter, const Node& node, bool forward) {
  const ValueType& type = rewriter.type_of(node.arguments.front());
  if (!type.sized) return false;
  const auto rank = static_cast<int64_t>(type.sizes.size());
  if (node.is("aten::transpose.int")) {
    const auto *first = node.argument("dim0").get<int64_t>(), *second = node.argument("dim1").get<int64_t>();
    if (rank != 3 || first == nullptr || second == nullptr) return false;
    return ((*first + rank) % rank) * ((*second + rank) % rank) == 2;  // 1 and 2
  }
  const auto order = node.is("aten::permute") ? literal_ints(node.argument("dims")) : std::nullopt;
  if (!order || static_cast<int64_t>(order->size()) != rank) return false;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t seen = ((*order)[static_cast<size_t>(i)] + rank) % rank;
    const int64_t expected = i == 0 ? 0 : forward ? (i == 1 ? rank - 1 : i - 1) : (i == rank - 1 ? 1 : i + 1);
    if (seen != expected) return false;
  }
  return true;
}

// permute, convolution, permute back.
bool convert_between_moves(Rewriter& rewriter, int position) {
  const Node& back = rewriter.node(position);
  if (!back.op.has_schema() || back.arguments.empty() || !back.arguments.front().is_value()) return false;
  const Argument result = rewriter.resolve(back.arguments.front());
  const Node* conv = rewriter.producer(result, "aten::convolution");
  if (conv == nullptr || !rewriter.has_one_use(result.value()) || !moves_channels(rewriter, back, false)) return false;
  const at::Tensor weight = read_pointwise(rewriter, *conv);
  const Argument input = rewriter.resolve(conv->argument("input"));
  const Node* move = input.is_value() ? rewriter.producer(input.value()) : nullptr;
  if (!weight.defined() || move == nullptr || !moves_channels(rewriter, *move, true)) return false;
  if (!all_equal(conv->argument("stride"), 1)) return false;
  const Argument source = rewriter.resolve(move->arguments.front()), bias = conv->argument("bias");
  const std::shared_ptr<const Origin> origin = conv->origin;
  rewriter.replace_node(position, Op::find("aten::linear"), {source, add_matrix(rewriter, *conv, weight), bias});
  rewriter.node(position).origin = origin;
  return true;
}

// permute, linear, permute back, of images.
bool convert_linear(Rewriter& rewriter, int position) {
  const Node& back = rewriter.node(position);
  if (!back.is("aten::permute")) return false;
  const Argument result = rewriter.resolve(back.arguments.front());
  const Node* linear = rewriter.producer(result, "aten::linear");
  if (linear == nullptr || !rewriter.has_one_use(result.value()) || !moves_channels(rewriter, back, true)) return false;
  const at::Tensor weight = constant_tensor(rewriter, rewriter.resolve(linear->argument("weight")));
  const Argument input = rewriter.resolve(linear->argument("input")), bias = linear->argument("bias");
  const Node* move = rewriter.producer(input, "aten::permute");
  if (!weight.defined() || weight.dim() != 2 || move == nullptr || !moves_channels(rewriter, *move, false))
    return false;
  const auto rank = static_cast<int64_t>(rewriter.type_of(result).sizes.size());
  // A permute that others read is made all the same.
  if (rank < 4 || rank > 5 || !rewriter.has_one_use(input.value())) return false;
  std::vector<int64_t> sizes = weight.sizes().vec();
  sizes.resize(static_cast<size_t>(rank), 1);
  const std::string name =
      name_of_weight(rewriter.program(), rewriter.resolve(linear->argument("weight"))) + ".pointwise";
  const Argument source = rewriter.resolve(move->arguments.front());
  const auto repeat = [&](int64_t number) { return ArgumentList(static_cast<size_t>(rank - 2), Argument(number)); };
  const std::shared_ptr<const Origin> origin = linear->origin;
  rewriter.replace_node(position, Op::find("aten::convolution"),
                        {source, add_constant(rewriter.program(), name, weight.reshape(sizes)), bias, repeat(1),
                         repeat(0), repeat(1), false, repeat(0), 1});
  rewriter.node(position).origin = origin;
  return true;
}

}  // namespace

int convert_pointwise_conv(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    convert_between_moves(rewriter, position) || convert_linear(rewriter, position) ||
        convert_pixel(rewriter, position);
  }
  return rewriter.finish();
}

}  // namespace lissome
