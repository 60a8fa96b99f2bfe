// See norm_link.h.
#include "lissome/train/loop/learn/norm_link.h"

#include <ATen/ops/scalar_tensor.h>

#include "lissome/train/loop/learn/gradient_exchange.h"

namespace lissome {

void NormLink::begin(double weight, int64_t step) {
  step_ = step;
  const at::Tensor all = at::scalar_tensor(weight, at::kDouble);
  group_.sum(all, "the samples" + name_step(step));
  share_ = weight > 0 ? weight / all.item().toDouble() : 0;
}

std::vector<at::Tensor> NormLink::gather(const at::Tensor& tensor) {
  return group_.gather(tensor.contiguous(), "the batch norms" + name_step(step_));
}

}  // namespace lissome
