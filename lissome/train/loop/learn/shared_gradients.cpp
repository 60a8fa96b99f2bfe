// See shared_gradients.h.
#include "lissome/train/loop/learn/shared_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>

#include "lissome/program.h"
#include "lissome/train/optim/update.h"

namespace lissome {
namespace {

const std::string kCommon = "common/";

const at::Tensor& find_state(const NamedTensors& state, const std::string& name, const at::Tensor& like) {
  for (const auto& [own, tensor] : state) {
    if (own != name) continue;
    if (tensor.sizes() == like.sizes() && tensor.scalar_type() == like.scalar_type()) return tensor;
    throw_error(ErrorKind::invalid_input, "the snapshot's state of compression ", quote(name), " has sizes ",
                format_sizes(tensor.sizes().vec()), ", this training needs ", format_sizes(like.sizes().vec()));
  }
  throw_error(ErrorKind::invalid_input, "the snapshot has no state of compression ", quote(name),
              ": its gradients were compressed otherwise");
}

int count_ranks(const NamedTensors& state) {
  int ranks = 0;
  const auto is_next = [&](const auto& entry) { return entry.first.starts_with(name_kept(ranks, "")); };
  while (std::ranges::any_of(state, is_next)) ++ranks;
  return ranks;
}

// What this rank continues with: its own, or its share where other ranks were before, whose sum is what counts.
at::Tensor take_own(const NamedTensors& state, const std::string& name, const at::Tensor& like, const Group& group) {
  const int before = count_ranks(state);
  if (before == group.ranks()) return find_state(state, name_kept(group.rank(), name), like);
  at::Tensor sum = find_state(state, name_kept(0, name), like).clone();
  for (int rank = 1; rank < before; ++rank) sum.add_(find_state(state, name_kept(rank, name), like));
  return sum.div_(group.ranks());
}

}  // namespace

SharedGradients::SharedGradients(Group& group, GradientCompression compression,
                                 std::unique_ptr<GradientCompressor> compressor, const NamedTensors& parameters,
                                 const std::vector<at::Tensor>& state)
    : GradientExchange(group, state),
      compression_(std::move(compression)),
      compressor_(std::move(compressor)),
      views_(parameters.size()) {
  int64_t elements = 0;
  for (const auto& [name, parameter] : parameters) elements += parameter.numel();
  flat_ = at::zeros({elements}, at::kFloat);
  int64_t first = 0;
  const auto add_views = [&](bool taken) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      if ((compressor_ && compressor_->takes(i)) != taken) continue;
      const at::Tensor& parameter = parameters[i].second;
      views_[i] = flat_.narrow(0, first, parameter.numel()).view(parameter.sizes());
      first += parameter.numel();
    }
  };
  add_views(true);
  const int64_t taken = first;
  add_views(false);
  dense_ = flat_.narrow(0, taken, elements - taken);
}

void SharedGradients::fill_views(const std::vector<at::Tensor>& gradients) {
  flat_.zero_();
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) views_[i].copy_(gradients[i]);
  }
}

UpdatePart SharedGradients::finish(const std::vector<at::Tensor>& gradients, const UpdatePart& part) {
  const at::NoGradGuard no_gradients;
  // A mean over no labels is NaN and must not count.
  const bool counts = part.samples > 0 && part.weight > 0;
  fill_views(counts ? gradients : std::vector<at::Tensor>());
  const bool finite = !compressor_ || std::isfinite(sum_all_squares(std::span(&flat_, 1)));
  std::vector<double> numbers = {counts ? part.loss * part.weight : 0.0,
                                 part.weight,
                                 static_cast<double>(part.samples),
                                 part.interrupted ? 1.0 : 0.0,
                                 part.save_due ? 1.0 : 0.0,
                                 finite ? 0.0 : 1.0};
  const size_t first_flag = numbers.size();  // for each parameter, whether it has a gradient
  for (size_t i = 0; i < views_.size(); ++i) numbers.push_back(i < gradients.size() && gradients[i].defined() ? 1 : 0);
  const at::Tensor shared = at::tensor(numbers, at::kDouble);
  group().sum(shared, "the loss" + name_step(step_));
  const auto* sums = shared.const_data_ptr<double>();
  const UpdatePart all = {.loss = sums[0] / sums[1],
                          .weight = sums[1],
                          .samples = static_cast<int64_t>(sums[2]),
                          .interrupted = sums[3] > 0,
                          .save_due = sums[4] > 0};
  // Where no label counts on any rank, gradients are 0, as in one process.
  const RankShare share = {.weight = all.weight > 0 ? part.weight / all.weight : 0, .momentum = momentum_};
  flat_.mul_(share.weight);
  sum_gradients(share, sums[5] == 0);
  set_results(views_, sums + first_flag, all);
  return all;
}

// Gradients with NaN or infinity travel as they are: a step with them changes nothing, and must not change what the
// compressor keeps.
void SharedGradients::sum_gradients(const RankShare& share, bool finite) {
  const std::string what = "the gradients" + name_step(step_);
  if (!compressor_ || !finite) return sum_flat(flat_, what);
  compressor_->prepare(views_, share);
  if (step_ <= compressor_->dense_steps()) return sum_flat(flat_, what);
  compressor_->sum(group(), views_, what);
  sum_flat(dense_, what);
}

void SharedGradients::sum_flat(const at::Tensor& flat, const std::string& what) {
  if (const auto* own = std::get_if<GradientSum>(&compression_)) return (*own)(group(), flat, step_);
  const auto* dense = std::get_if<DenseGradients>(&compression_);
  if (dense == nullptr || dense->dtype == Dtype::f32) return group().sum(flat, what);
  const at::Tensor narrow = flat.to(scalar_type_of(dense->dtype));
  group().sum(narrow, what);
  flat.copy_(narrow);
}

void SharedGradients::adjust(StepOptions& options) const {
  if (compressor_) compressor_->adjust(options);
}

std::string SharedGradients::describe(int64_t steps) const {
  if (!compressor_) return {};
  const std::string first = "the first " + std::to_string(compressor_->dense_steps()) + " steps";
  if (steps <= compressor_->dense_steps())
    return "gradients are not compressed: " + first + " send every number, and this training has " +
           std::to_string(steps) + "; lower --compress-from";
  if (compressor_->count_bytes() == 0) return "gradients are not compressed: none would be smaller";
  constexpr int64_t kBytes = sizeof(float);
  const int64_t whole = flat_.numel() * kBytes, sent = dense_.numel() * kBytes + compressor_->count_bytes();
  char times[32];
  std::snprintf(times, sizeof times, "%.3g", static_cast<double>(whole) / static_cast<double>(sent));
  return "each rank gives " + format_bytes(sent) + " of gradients to a step in place of " + format_bytes(whole) + ", " +
         times + " times less, after " + first;
}

NamedTensors SharedGradients::collect(int64_t step) const {
  NamedTensors all;
  if (!compressor_) return all;
  for (const auto& [name, tensor] : compressor_->list_common_state()) all.emplace_back(kCommon + name, tensor);
  for (const auto& [name, tensor] : compressor_->list_own_state()) {
    const std::vector<at::Tensor> of_ranks = group().gather(tensor, "the state of compression" + name_step(step));
    for (size_t rank = 0; group().rank() == 0 && rank < of_ranks.size(); ++rank)
      all.emplace_back(name_kept(static_cast<int>(rank), name), of_ranks[rank]);
  }
  return all;
}

void SharedGradients::restore(const NamedTensors& state) {
  if (!compressor_ || !has_kept_gradients(state)) return;
  const at::NoGradGuard no_gradients;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // to, from
  for (const auto& [name, tensor] : compressor_->list_common_state())
    copies.emplace_back(tensor, find_state(state, kCommon + name, tensor));
  for (const auto& [name, tensor] : compressor_->list_own_state())
    copies.emplace_back(tensor, take_own(state, name, tensor, group()));
  for (const auto& [to, from] : copies) to.copy_(from);
}

}  // namespace lissome
