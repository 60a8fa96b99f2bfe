#include "lissome/kernel/depthwise/separable_f32.h"

#include <algorithm>

#include "lissome/kernel/depthwise/kernel_versions.h"
#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// Of 16 to 256 KiB, those of 64 and less read the weights of many channels too often.
constexpr int64_t kBlockBytes = 128 * 1024;
constexpr int64_t kLeastPixels = 24;  // a few tiles of the product, each of which reads the weights once

int64_t most_pixels(const SeparableF32Call& call) {
  return std::max(kBlockBytes / (call.channels * static_cast<int64_t>(sizeof(float))), kLeastPixels);
}

// Neighbouring pixels of y from number `row` on, as an image of their own: whole lines, or a piece of one.
struct PixelRun {
  Window window;
  int64_t image, row, count;
};

PixelRun take_run(const Window& whole, int64_t row, int64_t most) {
  PixelRun run = {whole, row / whole.out_width / whole.out_height, row, 0};
  Window& w = run.window;
  const int64_t column = row % whole.out_width, line = row / whole.out_width % whole.out_height;
  const bool lines = column == 0 && most >= whole.out_width;
  w.batch = 1;
  w.pad_height -= line * whole.stride_height, w.pad_width -= column * whole.stride_width;
  w.out_height = lines ? std::min(most / whole.out_width, whole.out_height - line) : 1;
  w.out_width = lines ? whole.out_width : std::min(most, whole.out_width - column);
  run.count = w.out_height * w.out_width;
  return run;
}

DepthwiseF32Call make_first(const SeparableF32Call& call, const PixelRun& run, float* y) {
  DepthwiseF32Call first;
  first.x = call.x + run.image * run.window.height * run.window.width * call.channels;
  first.weight = call.first_weight, first.bias = call.first_bias, first.y = y;
  first.channels = first.y_stride = call.channels;
  first.window = run.window, first.epilogue = call.first_epilogue;
  return first;
}

LinearF32Call make_product(const SeparableF32Call& call, const PixelRun& run, const float* x) {
  LinearF32Call product;
  static_cast<OutputF32&>(product) = call;
  product.y += run.row * call.y_stride;
  if (product.residual) product.residual += run.row * call.residual_stride;
  product.x = x, product.weight = call.weight;
  product.rows = run.count, product.inputs = product.x_stride = call.channels, product.outputs = call.outputs;
  return product;
}

// `First` and `Product` are the kernels of one instruction set.
template <void (*First)(const DepthwiseF32Call&, int, int), void (*Product)(const LinearF32Call&, int, int)>
void run_separable(const SeparableF32Call& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  const int64_t most = most_pixels(call);
  float* block = call.scratch + part * separable_f32_scratch(call);
  for (int64_t row = rows.begin; row < rows.end;) {
    const PixelRun run = take_run(w, row, std::min(most, rows.end - row));
    First(make_first(call, run, block), 0, 1);
    Product(make_product(call, run, block), 0, 1);
    row += run.count;
  }
}

}  // namespace

int64_t separable_f32_scratch(const SeparableF32Call& call) { return most_pixels(call) * call.channels; }

void separable_f32_avx512(const SeparableF32Call& call, int part, int parts) {
  run_separable<depthwise_f32_avx512, linear_f32_avx512>(call, part, parts);
}
void separable_f32_avx2(const SeparableF32Call& call, int part, int parts) {
  run_separable<depthwise_f32_avx2, linear_f32_avx2>(call, part, parts);
}
void separable_f32_portable(const SeparableF32Call& call, int part, int parts) {
  run_separable<depthwise_f32_portable, linear_f32_portable>(call, part, parts);
}

}  // namespace lissome
