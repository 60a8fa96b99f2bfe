// A 3-d convolution -> a 2-d one over frames: each frame of the result is a convolution of the frames that its window
// sees, stacked as channels. So images have all forms of a convolution, Winograd's among them, and taps that meet
// nothing but padding cost nothing.
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// The window along the first spatial dimension.
struct Depth {
  int64_t stride, dilation, before, frames, results;
  std::vector<int64_t> taps;  // those that meet a frame, ascending

  int64_t first() const { return taps.front() * dilation - before; }  // frame that result 0 sees first
  int64_t last() const { return (results - 1) * stride + taps.back() * dilation - before; }
  int64_t zeros_before() const { return std::max<int64_t>(0, -first()); }
  int64_t zeros_behind() const { return std::max<int64_t>(0, last() + 1 - frames); }
};

// Larger numbers overflow what is computed of them, and more taps make a copy of x that large.
constexpr int64_t kMostFrames = 1 << 20, kMostTaps = 8;

bool is_small(const Depth& depth) {
  const auto within = [](int64_t number, int64_t least) { return number >= least && number <= kMostFrames; };
  return within(depth.stride, 1) && within(depth.dilation, 1) && within(depth.before, 0) && within(depth.frames, 1) &&
         within(depth.results, 1);
}

bool meets_frame(const Depth& depth, int64_t tap) {
  const int64_t least = depth.before - tap * depth.dilation;  // what a result moves the tap to reach frame 0
  const int64_t result = least > 0 ? (least + depth.stride - 1) / depth.stride : 0;
  return result < depth.results && result * depth.stride < least + depth.frames;
}

// A convolution that this pass takes, and what it reads.
struct DeepConv {
  at::Tensor weight;
  ValueType x, y;
  std::vector<int64_t> stride, padding, dilation;  // padding: of three dimensions, or of both ends of each
  Depth depth;
};

std::optional<DeepConv> read_conv(Rewriter& rewriter, const Node& node) {
  if (!node.is("aten::convolution") && !node.is("lissome::conv_act")) return std::nullopt;
  if (node.argument("transposed") != Argument(false) || node.argument("groups") != Argument(1)) return std::nullopt;
  const auto stride = literal_ints(node.argument("stride")), padding = literal_ints(node.argument("padding"));
  const auto dilation = literal_ints(node.argument("dilation"));
  const at::Tensor weight = constant_tensor(rewriter, rewriter.resolve(node.argument("weight")));
  if (!weight.defined() || weight.dim() != 5 || !stride || !padding || !dilation) return std::nullopt;
  if (stride->size() != 3 || dilation->size() != 3 || (padding->size() != 3 && padding->size() != 6))
    return std::nullopt;
  const ValueType x = rewriter.type_of(rewriter.resolve(node.arguments.front()));
  const ValueType y = rewriter.type_of(node.result());
  if (!is_sized_float(x) || !is_sized_float(y) || x.sizes.size() != 5 || y.sizes.size() != 5) return std::nullopt;
  const auto frames = x.sizes[2].constant(), results = y.sizes[2].constant();
  if (!frames || !results) return std::nullopt;
  DeepConv conv = {weight, x, y, *stride, *padding, *dilation, {}};
  conv.depth = {(*stride)[0], (*dilation)[0], (*padding)[0], *frames, *results, {}};
  if (!is_small(conv.depth) || weight.size(2) > kMostFrames) return std::nullopt;
  for (int64_t tap = 0; tap < weight.size(2); ++tap) {
    if (meets_frame(conv.depth, tap)) conv.depth.taps.push_back(tap);
  }
  const size_t taps = conv.depth.taps.size();
  return taps == 0 || taps > kMostTaps ? std::nullopt : std::make_optional(conv);
}

// Nodes around the convolution at `position`. A single video is without its batch, so that frames are the batch of
// images and keep the layout that those like best.
class FrameWriter {
 public:
  FrameWriter(Rewriter& rewriter, int position, const ValueType& x)
      : rewriter_(rewriter), position_(position), single_(x.sizes[0] == Dimension(1)) {}

  // [N, C, D, H, W] -> [N, D, C, H, W], or [D, C, H, W] of a single video.
  Argument bring_frames_forward(const Argument& video) {
    const ValueType& type = rewriter_.type_of(video);
    const auto& s = type.sizes;
    const Argument frames =
        add("aten::permute", {video, ArgumentList{0, 2, 1, 3, 4}}, type.dtype, {s[0], s[2], s[1], s[3], s[4]});
    return single_ ? add("aten::squeeze.dim", {frames, 0}, type.dtype, {s[2], s[1], s[3], s[4]}) : frames;
  }
  // Zeros before the first frame and behind the last.
  Argument pad(const Argument& frames, int64_t before, int64_t behind) {
    if (before == 0 && behind == 0) return frames;
    ValueType type = rewriter_.type_of(frames);
    Dimension& size = type.sizes.at(axis());
    size = *size.constant() + before + behind;
    return add("aten::constant_pad_nd", {frames, ArgumentList{0, 0, 0, 0, 0, 0, before, behind}, 0}, type.dtype,
               type.sizes);
  }
  // `count` frames, `step` apart.
  Argument take(const Argument& frames, int64_t first, int64_t count, int64_t step) {
    ValueType type = rewriter_.type_of(frames);
    Dimension& size = type.sizes.at(axis());
    if (first == 0 && step == 1 && size == Dimension(count)) return frames;
    size = count;
    return add("aten::slice.Tensor", {frames, axis_number(), first, first + (count - 1) * step + 1, step}, type.dtype,
               type.sizes);
  }
  Argument stack(const ArgumentList& some) {
    if (some.size() == 1) return some.front();
    ValueType type = rewriter_.type_of(some.front());
    Dimension& channels = type.sizes.at(axis() + 1);
    channels = *channels.constant() * static_cast<int64_t>(some.size());
    return add("aten::cat", {some, axis_number() + 1}, type.dtype, type.sizes);
  }
  // [N, D, C, H, W] -> [N * D, C, H, W], whose sizes can_merge() has seen.
  Argument merge_batch(const Argument& frames) {
    if (single_) return frames;
    const ValueType type = rewriter_.type_of(frames);
    const auto& s = type.sizes;
    const Dimension images = Dimension::combine(Dimension::Operation::multiply, s[0], s[1]);
    return reshape(frames, {images, s[2], s[3], s[4]});
  }
  // Images of the result, back as the video of type `y` in the place of the convolution.
  bool write_video(const Argument& images, const ValueType& y) {
    const auto& s = y.sizes;
    const std::vector<Dimension> sizes = {s[0], s[2], s[1], s[3], s[4]};
    const Argument frames = single_ ? add("aten::unsqueeze", {images, 0}, y.dtype, sizes) : reshape(images, sizes);
    return rewriter_.replace_node(position_, Op::find("aten::permute"), {frames, ArgumentList{0, 2, 1, 3, 4}});
  }
  Argument add(std::string_view op, ArgumentList arguments, Dtype dtype, std::vector<Dimension> sizes) {
    return rewriter_.insert_before(position_, Op::find(op), std::move(arguments),
                                   {tensor_type(dtype, std::move(sizes))}, rewriter_.node(position_).origin);
  }

 private:
  Argument reshape(const Argument& value, const std::vector<Dimension>& sizes) {
    return add("aten::reshape", {value, literal_sizes(sizes).value()}, rewriter_.type_of(value).dtype, sizes);
  }
  size_t axis() const { return single_ ? 0 : 1; }
  int64_t axis_number() const { return static_cast<int64_t>(axis()); }

  Rewriter& rewriter_;
  int position_;
  bool single_;
};

// [O, C, taps, KH, KW] -> [O, taps * C, KH, KW]
Argument stack_weight(Rewriter& rewriter, const Node& node, const DeepConv& conv) {
  const at::Tensor taps = conv.weight.index_select(2, at::tensor(conv.depth.taps));
  const at::Tensor stacked = taps.permute({0, 2, 1, 3, 4}).flatten(1, 2).contiguous();
  const std::string& name = name_of_weight(rewriter.program(), rewriter.resolve(node.argument("weight")));
  return add_constant(rewriter.program(), name + ".frames", stacked);
}

// Without that of the first of three dimensions.
ArgumentList drop_depth(const std::vector<int64_t>& numbers) {
  ArgumentList kept;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i % 3 != 0) kept.emplace_back(numbers[i]);
  }
  return kept;
}

// Whether frames and batch can be one dimension, or need not.
bool can_merge(const DeepConv& conv) {
  const auto merges = [](const ValueType& type) {
    return std::all_of(type.sizes.begin() + 1, type.sizes.end(),
                       [](const Dimension& d) { return d.constant().value_or(0) > 0; });
  };
  return conv.x.sizes[0] == Dimension(1) || (merges(conv.x) && merges(conv.y));
}

bool stack_frames(Rewriter& rewriter, int position) {
  const Node node = rewriter.node(position);
  const std::optional<DeepConv> conv = read_conv(rewriter, node);
  if (!conv || !can_merge(*conv)) return false;
  const Depth& depth = conv->depth;
  FrameWriter writer(rewriter, position, conv->x);
  const auto read_images = [&](const Argument& video) { return writer.bring_frames_forward(rewriter.resolve(video)); };
  const Argument frames = writer.pad(read_images(node.arguments.front()), depth.zeros_before(), depth.zeros_behind());
  ArgumentList seen;
  for (const int64_t tap : depth.taps) {
    const int64_t first = tap * depth.dilation - depth.before + depth.zeros_before();
    seen.push_back(writer.take(frames, first, depth.results, depth.stride));
  }
  ArgumentList arguments = node.arguments;
  arguments.at(0) = writer.merge_batch(writer.stack(seen));
  arguments.at(1) = stack_weight(rewriter, node, *conv);
  arguments.at(3) = drop_depth(conv->stride);
  arguments.at(4) = drop_depth(conv->padding);
  arguments.at(5) = drop_depth(conv->dilation);
  arguments.at(7) = ArgumentList{0, 0};
  if (node.is("lissome::conv_act") && arguments.size() > 10 && !arguments.at(10).is_none()) {
    arguments.at(10) = writer.merge_batch(read_images(arguments.at(10)));
  }
  const auto& y = conv->y.sizes;
  const Dimension images = Dimension::combine(Dimension::Operation::multiply, y[0], y[2]);
  const Argument result = writer.add(node.op.name(), std::move(arguments), conv->y.dtype, {images, y[1], y[3], y[4]});
  return writer.write_video(result, conv->y);
}

}  // namespace

int stack_conv_frames(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) stack_frames(rewriter, position);
  return rewriter.finish();
}

}  // namespace lissome
