// See top_k_compressor.h.
#include "lissome/train/loop/learn/top_k_compressor.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lissome/base.h"
#include "lissome/train/optim/update.h"

namespace lissome {
namespace {

constexpr int64_t kLeastElements = 1000;  // of a gradient that is worth a selection

void check_optimizer(const CompressedOptimizer& optimizer) {
  const auto refuse = [](const char* why, const char* way) {
    throw_error(ErrorKind::usage, "top-k compression ", why, ".\n      ", way);
  };
  if (std::holds_alternative<Lion>(optimizer.options))
    refuse("sends no gradient for most weights of a step, and lion moves every weight by a sign all the same",
           "Take another optimizer, or compress by powersgd");
  const auto* sgd = std::get_if<Sgd>(&optimizer.options);
  if (sgd == nullptr || sgd->momentum == 0) return;
  const bool group_decays = std::ranges::any_of(
      optimizer.groups, [](const ParameterGroup& group) { return group.weight_decay.value_or(0) != 0; });
  if (sgd->weight_decay != 0 || group_decays)
    refuse("takes the momentum of sgd before gradients are exchanged, and weight decay goes through the momentum",
           "Give a weight decay of 0, take adamw, or compress by powersgd");
  if (sgd->dampening != 0)
    refuse("takes the momentum of sgd before gradients are exchanged, without dampening", "Give a dampening of 0");
}

// Adds a peer's elements to `sum`. Another process wrote the indices.
void add_elements(const int32_t* indices, const int32_t* bits, int64_t count, const at::Tensor& sum, int rank) {
  auto* numbers = sum.mutable_data_ptr<float>();
  const auto* values = reinterpret_cast<const float*>(bits);
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] < 0 || indices[i] >= sum.numel())
      throw_error(ErrorKind::invalid_input, "rank ", rank, " sent the gradient of element ", indices[i], " of ",
                  sum.numel(), ": it is no rank of this training");
    numbers[indices[i]] += values[i];
  }
}

}  // namespace

// Each element that is sent brings its index, so that half of them or more would not be smaller.
int64_t count_top_elements(int64_t elements, double share) {
  if (elements <= kLeastElements || elements > std::numeric_limits<int32_t>::max()) return 0;
  const int64_t sent = std::max<int64_t>(1, std::llround(static_cast<double>(elements) * share));
  return 2 * sent < elements ? sent : 0;
}

TopKCompressor::TopKCompressor(const TopKGradients& options, const NamedTensors& parameters,
                               const CompressedOptimizer& optimizer)
    : dense_steps_(options.dense_steps),
      clip_norm_(optimizer.clip_norm),
      momentum_(std::holds_alternative<Sgd>(optimizer.options) ? std::get<Sgd>(optimizer.options).momentum : 0),
      nesterov_(std::holds_alternative<Sgd>(optimizer.options) && std::get<Sgd>(optimizer.options).nesterov) {
  if (!(options.share > 0 && options.share <= 1))
    throw_error(ErrorKind::usage,
                "the share of elements that top-k compression sends must be above 0 % and at most "
                "100 %, not ",
                100 * options.share, " %");
  check_optimizer(optimizer);
  int64_t sent = 0;
  for (const auto& [name, weight] : parameters) {
    Kept kept{.name = name, .sent = count_top_elements(weight.numel(), options.share), .unsent = {}, .velocity = {}};
    if (kept.sent > 0) kept.unsent = at::zeros({weight.numel()}, at::kFloat);
    if (momentum_ > 0) kept.velocity = at::zeros({weight.numel()}, at::kFloat);
    sent += kept.sent;
    kept_.push_back(std::move(kept));
  }
  message_ = at::empty({2 * sent}, at::kInt);
}

void TopKCompressor::prepare(const std::vector<at::Tensor>& gradients, const RankShare& share) {
  const double norm = std::sqrt(sum_all_squares(gradients));
  const double most = clip_norm_ * share.weight;
  if (clip_norm_ > 0 && norm > most) {
    for (const at::Tensor& gradient : gradients) gradient.mul_(most / norm);
  }
  if (momentum_ == 0) return;
  const double momentum = share.momentum.value_or(momentum_);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor flat = gradients[i].view(-1);
    kept_[i].velocity.mul_(momentum).add_(flat);
    if (nesterov_) {
      flat.add_(kept_[i].velocity, momentum);
    } else {
      flat.copy_(kept_[i].velocity);
    }
  }
}

void TopKCompressor::sum(Group& group, const std::vector<at::Tensor>& gradients, const std::string& what) {
  const int64_t all = message_.numel() / 2;
  auto* indices = message_.mutable_data_ptr<int32_t>();
  auto* values = reinterpret_cast<float*>(indices + all);
  int64_t first = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Kept& kept = kept_[i];
    if (kept.sent == 0) continue;
    kept.unsent.add_(gradients[i].view(-1));
    const at::Tensor chosen = std::get<1>(at::topk(kept.unsent.abs(), kept.sent, 0, true, false));
    auto* unsent = kept.unsent.mutable_data_ptr<float>();
    auto* velocity = kept.velocity.defined() ? kept.velocity.mutable_data_ptr<float>() : nullptr;
    const auto* elements = chosen.const_data_ptr<int64_t>();
    for (int64_t k = 0; k < kept.sent; ++k) {
      indices[first + k] = static_cast<int32_t>(elements[k]);
      values[first + k] = std::exchange(unsent[elements[k]], 0.0F);
      if (velocity != nullptr) velocity[elements[k]] = 0;  // else it would be sent again
    }
    first += kept.sent;
  }
  const std::vector<at::Tensor> messages = group.gather(message_, what);
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    const auto* of_rank = messages[rank].const_data_ptr<int32_t>();
    first = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (kept_[i].sent == 0) continue;
      if (rank == 0) gradients[i].zero_();
      add_elements(of_rank + first, of_rank + all + first, kept_[i].sent, gradients[i].view(-1),
                   static_cast<int>(rank));
      first += kept_[i].sent;
    }
  }
}

void TopKCompressor::adjust(StepOptions& options) const {
  options.clip_norm = 0;
  if (momentum_ > 0) options.momentum = 0;
}

NamedTensors TopKCompressor::list_own_state() const {
  NamedTensors state;
  for (const Kept& kept : kept_) {
    if (kept.unsent.defined()) state.emplace_back(kept.name + "/unsent", kept.unsent);
    if (kept.velocity.defined()) state.emplace_back(kept.name + "/velocity", kept.velocity);
  }
  return state;
}

}  // namespace lissome
