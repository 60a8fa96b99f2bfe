#include "lissome/program/op/convolve.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>

#include <algorithm>
#include <vector>

namespace lissome {

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                    at::IntArrayRef output_padding, int64_t groups) {
  const size_t spatial = stride.size();
  if (padding.size() != 2 * spatial)
    return at::convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  // The convolution pads what both sides have in common, as in most models before padding was joined: beside infinite
  // numbers it may give others where the zeros lie in x.
  std::vector<int64_t> common, around(2 * spatial);  // constant_pad_nd begins with the last dimension
  for (size_t i = 0; i < spatial; ++i) {
    common.push_back(transposed ? 0 : std::max<int64_t>(std::min(padding[i], padding[spatial + i]), 0));
    around[2 * (spatial - 1 - i)] = padding[i] - common[i];
    around[2 * (spatial - 1 - i) + 1] = padding[spatial + i] - common[i];
  }
  return at::convolution(at::constant_pad_nd(x, around), weight, bias, stride, common, dilation, transposed,
                         output_padding, groups);
}

}  // namespace lissome
