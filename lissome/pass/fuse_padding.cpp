// Zeros around an image -> the padding of the convolution that reads it. Where both ends of each dimension get as many,
// the convolution stays ATen's; else it becomes lissome::conv_act, whose padding may say first all numbers before the
// image and then all those behind.
#include <algorithm>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

struct Zeros {
  std::vector<int64_t> before, behind;  // of each spatial dimension

  bool is_even() const { return before == behind; }
  ArgumentList write() const {
    ArgumentList numbers(before.begin(), before.end());
    if (!is_even()) numbers.insert(numbers.end(), behind.begin(), behind.end());
    return numbers;
  }
};

bool is_convolution(const Node& node) {
  return (node.is("aten::convolution") || node.is("lissome::conv_act")) &&
         node.argument("transposed") == Argument(false);
}

const Node* find_zeros(Rewriter& rewriter, const Argument& image) {
  if (!image.is_value() || !rewriter.has_one_use(image.value())) return nullptr;
  if (const Node* pad = rewriter.producer(image, "aten::pad")) {
    if (pad->argument("mode") != Argument("constant")) return nullptr;
    const Argument& value = pad->argument("value");
    return value.is_none() || constant_number(rewriter, value) == 0.0 ? pad : nullptr;
  }
  const Node* pad = rewriter.producer(image, "aten::constant_pad_nd");
  return pad != nullptr && constant_number(rewriter, pad->argument("value")) == 0.0 ? pad : nullptr;
}

// What the image gets around it, if that is zeros or more around spatial dimensions alone.
std::optional<Zeros> read_zeros(const Node& pad, size_t spatial) {
  const auto around = literal_ints(pad.argument("pad"));
  if (!around || around->size() % 2 != 0) return std::nullopt;
  Zeros padding{std::vector<int64_t>(spatial, 0), std::vector<int64_t>(spatial, 0)};
  for (size_t i = 0; i < around->size() / 2; ++i) {  // the last dimension comes first
    const int64_t before = (*around)[2 * i], behind = (*around)[2 * i + 1];
    if (before < 0 || behind < 0) return std::nullopt;
    if (i < spatial) {
      padding.before[spatial - 1 - i] = before, padding.behind[spatial - 1 - i] = behind;
    } else if (before != 0 || behind != 0) {
      return std::nullopt;
    }
  }
  return padding;
}

bool fuse_into_convolution(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  if (!is_convolution(node) || !is_sized_float(rewriter.type_of(node.result()))) return false;
  const Argument image = rewriter.resolve(node.arguments.front());
  const Node* pad = find_zeros(rewriter, image);
  const auto stride = literal_ints(node.argument("stride")), own = literal_ints(node.argument("padding"));
  if (pad == nullptr || !stride || !own || own->size() != stride->size()) return false;
  std::optional<Zeros> padding = read_zeros(*pad, stride->size());
  if (!padding) return false;
  for (size_t i = 0; i < own->size(); ++i) padding->before[i] += (*own)[i], padding->behind[i] += (*own)[i];
  ArgumentList arguments = node.arguments;
  arguments.front() = pad->argument("self");
  arguments.at(static_cast<size_t>(node.op.argument_index("padding"))) = padding->write();
  if (padding->is_even() || !node.is("aten::convolution")) {
    rewriter.replace_node(position, node.op, std::move(arguments));
    return true;
  }
  arguments.emplace_back("none");
  arguments.emplace_back();
  rewriter.replace_node(position, Op::find("lissome::conv_act"), std::move(arguments));
  return true;
}

}  // namespace

int fuse_padding(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) fuse_into_convolution(rewriter, position);
  return rewriter.finish();
}

}  // namespace lissome
