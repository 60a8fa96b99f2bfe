// What the batch norms of a step give the other ranks. They have a group of their own, because the gradients of other
// ranks may leave in another order among them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lissome/differentiate.h"
#include "lissome/distributed.h"

namespace lissome {

class NormLink : public RankLink {
 public:
  // All ranks of `group` make theirs at once.
  explicit NormLink(const Group& group) : group_(group, "batch norms") {}

  // Begins a step. `weight`: of this rank's loss, see UpdatePart. Throws the errors of Group::sum().
  void begin(double weight, int64_t step);
  double share() const override { return share_; }
  std::vector<at::Tensor> gather(const at::Tensor& tensor) override;

 private:
  Group group_;
  double share_ = 0;
  int64_t step_ = 0;
};

}  // namespace lissome
