// conv1d, conv2d.padding, conv_transpose3d.input ... say the same as convolution with every list written out.
#include "lissome/pass/canonicalize_conv.h"

namespace lissome {
namespace {

struct ConvSpelling {
  std::string_view name;
  int dimensions;
  bool transposed;
};
constexpr ConvSpelling kConvs[] = {
    {"aten::conv1d", 1, false},
    {"aten::conv2d", 2, false},
    {"aten::conv3d", 3, false},
    {"aten::conv1d.padding", 1, false},
    {"aten::conv2d.padding", 2, false},
    {"aten::conv3d.padding", 3, false},
    {"aten::conv_transpose1d", 1, true},
    {"aten::conv_transpose2d.input", 2, true},
    {"aten::conv_transpose3d.input", 3, true},
};

const ConvSpelling* find_spelling(const Node& node) {
  for (const ConvSpelling& conv : kConvs) {
    if (node.is(conv.name)) return &conv;
  }
  return nullptr;
}

// [2] stands for [2, 2] in a schema such as `int[2] stride`.
Argument widen(const Argument& list, int dimensions) {
  if (!list.is_list() || list.list().size() != 1) return list;
  return ArgumentList(static_cast<size_t>(dimensions), list.list().front());
}

struct Padding {
  ArgumentList sides;           // on both sides of each dimension
  std::vector<int64_t> beyond;  // what the right side has more
};

// "same" keeps the sizes: dilation * (kernel - 1) in all, the odd one on the right.
std::optional<Padding> read_padding(Rewriter& rewriter, const Node& node, const ConvSpelling& conv) {
  const auto count = static_cast<size_t>(conv.dimensions);
  const Argument written = node.argument("padding");
  if (written.is_list()) return Padding{widen(written, conv.dimensions).list(), std::vector<int64_t>(count, 0)};
  const auto* word = written.get<std::string>();
  if (word == nullptr) return std::nullopt;
  Padding padding{ArgumentList(count, Argument(0)), std::vector<int64_t>(count, 0)};
  if (*word == "valid") return padding;
  const auto dilation = literal_ints(widen(node.argument("dilation"), conv.dimensions));
  const ValueType& weight = rewriter.type_of(node.argument("weight"));
  if (*word != "same" || !dilation || !weight.sized || weight.sizes.size() != count + 2) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    const auto kernel = weight.sizes[i + 2].constant();
    if (!kernel) return std::nullopt;
    const int64_t all = (*dilation)[i] * (*kernel - 1);
    padding.sides[i] = all / 2;
    padding.beyond[i] = all % 2;
  }
  return padding;
}

// The input with the padding that one side has more than the other; convolution itself pads both alike.
Argument pad_right(Rewriter& rewriter, int position, const Argument& input, const std::vector<int64_t>& beyond) {
  ArgumentList amounts;
  ValueType type = rewriter.type_of(input);
  for (size_t i = beyond.size(); i-- > 0;) {  // constant_pad_nd begins with the last dimension
    amounts.emplace_back(0);
    amounts.emplace_back(beyond[i]);
    type.sizes[i + 2] = Dimension::combine(Dimension::Operation::add, type.sizes[i + 2], beyond[i]);
  }
  const std::shared_ptr<const Origin> origin = rewriter.node(position).origin;
  return rewriter.insert_before(position, Op::find("aten::constant_pad_nd"), {input, amounts, 0}, {type}, origin);
}

}  // namespace

bool canonicalize_conv(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  const ConvSpelling* conv = find_spelling(node);
  if (conv == nullptr) return false;
  // An input without batch dimension has no counterpart among convolution's.
  Argument input = rewriter.resolve(node.argument("input"));
  const ValueType& type = rewriter.type_of(input);
  if (!type.sized || static_cast<int>(type.sizes.size()) != conv->dimensions + 2) return false;
  const std::optional<Padding> padding = read_padding(rewriter, node, *conv);
  if (!padding) return false;
  const bool uneven =
      std::any_of(padding->beyond.begin(), padding->beyond.end(), [](int64_t size) { return size > 0; });
  if (uneven) input = pad_right(rewriter, position, input, padding->beyond);
  const Argument output_padding = conv->transposed ? widen(node.argument("output_padding"), conv->dimensions)
                                                   : ArgumentList(static_cast<size_t>(conv->dimensions), Argument(0));
  rewriter.replace_node(
      position, Op::find("aten::convolution"),
      {input, node.argument("weight"), node.argument("bias"), widen(node.argument("stride"), conv->dimensions),
       padding->sides, widen(node.argument("dilation"), conv->dimensions), conv->transposed, output_padding,
       node.argument("groups")});
  return true;
}

}  // namespace lissome
