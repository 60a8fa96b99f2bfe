#include "lissome/kernel/depthwise/inverted_f32.h"

#include <algorithm>
#include <cstring>

#include "lissome/kernel/conv/conv_planes.h"
#include "lissome/kernel/depthwise/kernel_versions.h"
#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// Leaves room for the weights and the block of the product in a second level of cache of 1 MiB.
constexpr int64_t kBandBytes = 384 * 1024;

// Lines of y for which the lines between fit the band.
int64_t count_lines(const InvertedF32Call& call) {
  const Window& w = call.window;
  const int64_t line_bytes = w.width * call.channels * static_cast<int64_t>(sizeof(float));
  const int64_t seen = std::max<int64_t>(kBandBytes / std::max<int64_t>(line_bytes, 1), 1);
  return std::max<int64_t>((seen - count_seen_lines(w, 1)) / w.stride_height + 1, 1);
}

// Lines [begin, end) of image `image` that lie in a band from its start on.
struct BandLines {
  int64_t image = -1, begin = 0, end = 0;
};

using Widen = void (*)(const LinearF32Call&, int, int);
using Narrow = void (*)(const SeparableF32Call&, int, int);

class Band {
 public:
  Band(const InvertedF32Call& call, int part)
      : call_(call), line_(call.window.width * call.channels), at_(call.band + part * inverted_f32_band(call)) {}

  // Makes lines [begin, end) of an image stand in the band; those that are there already only move.
  void fill(Widen widen, int64_t image, int64_t begin, int64_t end) {
    int64_t known = begin;
    if (image == lines_.image && begin >= lines_.begin && begin < lines_.end) {
      known = std::min(lines_.end, end);
      const float* from = at_ + (begin - lines_.begin) * line_;
      std::memmove(at_, from, static_cast<size_t>((known - begin) * line_) * sizeof(float));
    }
    if (known < end) widen(make_product(image, known, end - known, at_ + (known - begin) * line_), 0, 1);
    lines_ = {image, begin, end};
  }
  const float* data() const { return at_; }

 private:
  LinearF32Call make_product(int64_t image, int64_t line, int64_t lines, float* y) const {
    const Window& w = call_.window;
    LinearF32Call product;
    product.x = call_.x + (image * w.height + line) * w.width * call_.inputs;
    product.weight = call_.widen_weight, product.bias = call_.widen_bias, product.y = y;
    product.epilogue = call_.widen_epilogue;
    product.rows = lines * w.width, product.inputs = product.x_stride = call_.inputs;
    product.outputs = product.y_stride = call_.channels;
    return product;
  }

  const InvertedF32Call& call_;
  int64_t line_;
  float* at_;
  BandLines lines_;
};

// Lines of y from number `line` of all images on, which read lines [begin, end) of one image in `band`.
SeparableF32Call make_rest(const InvertedF32Call& call, int part, int64_t line, int64_t count, Range seen,
                           const float* band) {
  const Window& w = call.window;
  SeparableF32Call rest = call;
  rest.x = band;
  rest.scratch += part * separable_f32_scratch(call);
  rest.window.batch = 1, rest.window.out_height = count, rest.window.height = seen.end - seen.begin;
  rest.window.pad_height = seen.begin - (line % w.out_height * w.stride_height - w.pad_height);
  rest.y += line * w.out_width * call.y_stride;
  if (rest.residual) rest.residual += line * w.out_width * call.residual_stride;
  return rest;
}

// `widen` and `narrow` are the kernels of one instruction set.
void run_inverted(const InvertedF32Call& call, int part, int parts, Widen widen, Narrow narrow) {
  const Window& w = call.window;
  const Range mine = split_evenly(w.batch * w.out_height, part, parts);
  const int64_t most = count_lines(call);
  Band band(call, part);
  for (int64_t line = mine.begin; line < mine.end;) {
    const int64_t oh = line % w.out_height, count = std::min({most, w.out_height - oh, mine.end - line});
    const int64_t top = oh * w.stride_height - w.pad_height;
    const int64_t begin = std::clamp<int64_t>(top, 0, w.height);
    const int64_t end = std::clamp(top + count_seen_lines(w, count), begin, w.height);
    band.fill(widen, line / w.out_height, begin, end);
    narrow(make_rest(call, part, line, count, {begin, end}, band.data()), 0, 1);
    line += count;
  }
}

}  // namespace

int64_t inverted_f32_band(const InvertedF32Call& call) {
  const Window& w = call.window;
  return std::min(count_seen_lines(w, count_lines(call)), w.height) * w.width * call.channels;
}

void inverted_f32_avx512(const InvertedF32Call& call, int part, int parts) {
  run_inverted(call, part, parts, linear_f32_avx512, separable_f32_avx512);
}
void inverted_f32_avx2(const InvertedF32Call& call, int part, int parts) {
  run_inverted(call, part, parts, linear_f32_avx2, separable_f32_avx2);
}
void inverted_f32_portable(const InvertedF32Call& call, int part, int parts) {
  run_inverted(call, part, parts, linear_f32_portable, separable_f32_portable);
}

}  // namespace lissome
