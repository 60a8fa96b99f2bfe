#include "lissome/program/op/convolve.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>

namespace lissome {

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                    at::IntArrayRef output_padding, int64_t groups) {
  const size_t spatial = stride.size();
  if (padding.size() != 2 * spatial)
    return at::convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  std::vector<int64_t> around;  // constant_pad_nd begins with the last dimension
  for (size_t i = spatial; i-- > 0;) around.insert(around.end(), {padding[i], padding[spatial + i]});
  const std::vector<int64_t> none(spatial, 0);
  return at::convolution(at::constant_pad_nd(x, around), weight, bias, stride, none, dilation, transposed,
                         output_padding, groups);
}

}  // namespace lissome
