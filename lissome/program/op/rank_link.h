// What the ranks of a training give each other inside a step. The ops lissome::pool_moments and lissome::sum_over_ranks
// ask for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lissome {

class RankLink {
 public:
  RankLink() = default;
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;
  virtual ~RankLink() = default;

  // The factor of this rank's loss in the loss of all, from 0 to 1. 0: its samples count nowhere.
  virtual double share() const = 0;
  // What each rank gives, in the order of ranks: dense tensors of equal sizes and dtype. All ranks call it in the same
  // order.
  virtual std::vector<at::Tensor> gather(const at::Tensor& tensor) = 0;
};

// The ops of this thread go through `link` while this lives; null: this process is alone, as without a scope.
class RankLinkScope {
 public:
  explicit RankLinkScope(RankLink* link);
  RankLinkScope(const RankLinkScope&) = delete;
  RankLinkScope& operator=(const RankLinkScope&) = delete;
  ~RankLinkScope();

 private:
  RankLink* before_;
};

}  // namespace lissome
