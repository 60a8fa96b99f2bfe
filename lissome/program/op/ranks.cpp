// Batch norm over the samples of all ranks. Its two collectives are ops that no formula looks into: they are recorded
// as they stand, run in the order of the program and are never repeated.
#include <ATen/ops/full_like.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "lissome/program/op/check_arguments.h"
#include "lissome/program/op/rank_link.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

thread_local RankLink* current_link = nullptr;

using OptionalTensor = std::optional<at::Tensor>;
using Moments = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // mean, variance, count

template <typename Result>
Result call_op(const char* name, const at::Tensor& x) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Result(const at::Tensor&)>().call(x);
}

// Adds the samples of each rank as Chan, Golub and LeVeque (1979) pool two samples. `of_ranks`: each f64 [3, C] of
// counts, means and sums of squares around the mean. A rank without samples may hold anything.
Moments pool(const std::vector<at::Tensor>& of_ranks) {
  double count = 0;
  at::Tensor mean = at::zeros(of_ranks.front()[0].sizes(), at::kDouble), sum = at::zeros_like(mean);
  for (const at::Tensor& rank : of_ranks) {
    const double more = rank[0][0].item().toDouble();
    if (more == 0) continue;
    const at::Tensor apart = rank[1].sub(mean);
    sum.add_(rank[2]).addcmul_(apart, apart, count * more / (count + more));
    mean.add_(apart, more / (count + more));
    count += more;
  }
  return {mean, sum.div(count), at::scalar_tensor(count, at::kDouble)};
}

// Of the numbers of each channel, which is the second dimension: f32 mean and biased variance [C] (f64 for f64), and
// their count, f64 [].
Moments pool_moments(const at::Tensor& x) {
  check_arguments(x.dim() >= 2 && x.is_floating_point(), "moments are of real numbers [N, C, ...]");
  const at::ScalarType dtype = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  std::vector<int64_t> others = {0};
  for (int64_t dimension = 2; dimension < x.dim(); ++dimension) others.push_back(dimension);
  const auto count = static_cast<double>(x.numel() / std::max<int64_t>(x.size(1), 1));
  auto [variance, mean] = at::var_mean(x.to(dtype), others, /*correction=*/0);
  if (current_link == nullptr) return {mean, variance, at::scalar_tensor(count, at::kDouble)};
  const double counted = current_link->share() > 0 ? count : 0;
  const at::Tensor own = at::stack(
      {at::full_like(mean, counted, at::kDouble), mean.to(at::kDouble), variance.to(at::kDouble).mul_(count)});
  auto [pooled_mean, pooled_variance, all] = pool(current_link->gather(own));
  // No label counts on any rank.
  if (all.item().toDouble() == 0) return {mean, variance, at::scalar_tensor(count, at::kDouble)};
  return {pooled_mean.to(dtype), pooled_variance.to(dtype), all};
}

// Of derivatives of the loss of all, as this rank sees them, whose own loss has the factor share() in it.
at::Tensor sum_over_ranks(const at::Tensor& x) {
  if (current_link == nullptr) return x.clone();
  const double share = current_link->share();
  const at::Tensor own = share > 0 ? x.to(at::kDouble).mul_(share) : at::zeros(x.sizes(), at::kDouble);
  at::Tensor sum = at::zeros_like(own);
  for (const at::Tensor& rank : current_link->gather(own)) sum.add_(rank);
  return share > 0 ? sum.div_(share).to(x.scalar_type()) : at::zeros_like(x);
}

// [C] as it broadcasts against x.
at::Tensor along_channels(const at::Tensor& values, const at::Tensor& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
  sizes[1] = -1;
  return values.reshape(sizes);
}

// With n numbers a channel over all ranks, x^ = (x - mean) rstd, and sums over all ranks:
//   dx = weight rstd (dy - sum(dy) / n - x^ sum(dy x^) / n)
// (Ioffe and Szegedy 2015, arXiv 1502.03167). Gradients of weight and bias are of this rank.
class SynchronizedNorm : public torch::autograd::Function<SynchronizedNorm> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                                                const OptionalTensor& weight, const OptionalTensor& bias, double eps) {
    const auto [mean, variance, count] = call_op<Moments>("lissome::pool_moments", x);
    const at::Tensor y = std::get<0>(at::native_batch_norm(x, weight, bias, mean, variance, false, 0, eps));
    context->save_for_backward({x, weight.value_or(at::Tensor()), mean, variance, count});
    context->saved_data["eps"] = eps;
    context->saved_data["has_bias"] = bias && bias->defined();
    context->mark_non_differentiable({mean, variance, count});
    return {y, mean, variance, count};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const at::Tensor &dy = gradients[0], &x = saved[0], &weight = saved[1], &mean = saved[2], &variance = saved[3];
    const double eps = context->saved_data["eps"].toDouble();
    const OptionalTensor factor = weight.defined() ? OptionalTensor(weight) : std::nullopt;
    const auto [plain, sum_dy_x, sum_dy] =
        at::native_batch_norm_backward(dy, x, factor, mean, variance, {}, {}, false, eps, {true, true, true});
    const at::Tensor sums = call_op<at::Tensor>("lissome::sum_over_ranks", at::stack({sum_dy_x, sum_dy}));
    const at::Tensor rstd = variance.add(eps).rsqrt();
    const at::Tensor scale = (weight.defined() ? rstd.mul(weight) : rstd).div(saved[4].to(rstd.scalar_type()));
    const at::Tensor slope = sums[0].mul(scale).mul(rstd), shift = sums[1].mul(scale);
    const at::Tensor rest = x.sub(along_channels(mean, x)).mul(along_channels(slope, x)).add(along_channels(shift, x));
    const auto taken = [](const at::Tensor& gradient, bool wanted) { return wanted ? gradient : at::Tensor(); };
    return {plain.sub(rest).to(x.scalar_type()), taken(sum_dy_x, weight.defined()),
            taken(sum_dy, context->saved_data["has_bias"].toBool()), at::Tensor()};
  }
};

// ATen's kernels read as many numbers as x has channels, without a look at the sizes.
void check_per_channel(const at::Tensor& x, const OptionalTensor& values, const char* name) {
  if (!values || !values->defined()) return;
  const bool fits = values->scalar_type() == x.scalar_type() || values->scalar_type() == at::kFloat;
  check_arguments(values->dim() == 1 && values->size(0) == x.size(1) && fits, "'", name, "' of a batch norm has sizes ",
                  format_sizes(values->sizes().vec()), "; allowed is a number for each of ", x.size(1),
                  " channels, in f32 or as x");
}

at::Tensor move_running(const OptionalTensor& running, const at::Tensor& seen, double momentum) {
  if (!running || !running->defined()) return seen;
  return running->mul(1 - momentum).add(seen.to(running->scalar_type()).mul(momentum));
}

// y and the new running mean and variance, which is unbiased; without running statistics those of these samples.
std::tuple<at::Tensor, at::Tensor, at::Tensor> synchronized_batch_norm(
    const at::Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const OptionalTensor& running_mean,
    const OptionalTensor& running_var, double momentum, double eps) {
  check_arguments(x.dim() >= 2 && x.is_floating_point(), "a batch norm takes real numbers [N, C, ...]");
  check_per_channel(x, weight, "weight"), check_per_channel(x, bias, "bias");
  check_per_channel(x, running_mean, "running_mean"), check_per_channel(x, running_var, "running_var");
  const torch::autograd::variable_list results = SynchronizedNorm::apply(x, weight, bias, eps);
  const at::Tensor &mean = results[1], &variance = results[2];
  const at::Tensor count = results[3].to(mean.scalar_type());
  const at::Tensor unbiased = variance.mul(count.div(count.sub(1)));
  return {results[0], move_running(running_mean, mean, momentum), move_running(running_var, unbiased, momentum)};
}

}  // namespace

RankLinkScope::RankLinkScope(RankLink* link) : before_(std::exchange(current_link, link)) {}
RankLinkScope::~RankLinkScope() { current_link = before_; }

std::vector<OpRow> list_rank_ops() {
  constexpr auto kOpaque = c10::DispatchKey::CompositeExplicitAutograd;
  return {
      {"pool_moments(Tensor x) -> (Tensor mean, Tensor variance, Tensor count)", wrap_kernel(pool_moments), kOpaque},
      {"sum_over_ranks(Tensor x) -> Tensor", wrap_kernel(sum_over_ranks), kOpaque},
      {"synchronized_batch_norm(Tensor x, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
       "float momentum, float eps) -> (Tensor y, Tensor new_running_mean, Tensor new_running_var)",
       wrap_kernel(synchronized_batch_norm)},
  };
}

}  // namespace lissome
