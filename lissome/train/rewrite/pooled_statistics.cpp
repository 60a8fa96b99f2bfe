// See pooled_statistics.h. Statistics are set to zero before a part runs, so that it writes momentum times its own
// statistics.
#include "lissome/train/rewrite/pooled_statistics.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <map>

#include "lissome/train/rewrite/batch_norm_forms.h"

namespace lissome {
namespace {

void restore_one(const at::Tensor& tensor, const at::Tensor& before) { tensor.copy_(before); }

}  // namespace

PooledStatistics::PooledStatistics(const Program& program) : program_(program) {
  std::map<ValueId, const Weight*> written;  // by the value that is stored
  for (const StateWrite& write : program.writes) {
    if (const Weight* weight = program.find_weight(write.target)) written.emplace(write.value, weight);
  }
  for (const Node& node : program.nodes) {
    const BatchNormForm* kind = find_batch_norm_form(node);
    if (kind == nullptr || kind->mean == 0 || !program.value(node.argument("input").value()).type.sized) continue;
    const auto mean = written.find(node.results.at(kind->mean));
    const auto variance = written.find(node.results.at(kind->variance));
    const double* momentum = node.argument("momentum").get<double>();
    if (mean == written.end() || variance == written.end() || momentum == nullptr || *momentum == 0) continue;
    // A norm that is called twice writes statistics of both calls, the second from those of the first.
    if (node.argument("running_mean") != Argument(mean->second->value)) continue;
    Norm norm;
    norm.mean.tensor = mean->second->tensor.detach(), norm.variance.tensor = variance->second->tensor.detach();
    norm.momentum = *momentum, norm.input = node.argument("input").value();
    norms_.push_back(std::move(norm));
    written.erase(mean), written.erase(variance);
  }
  for (const auto& [value, weight] : written) {
    (weight->tensor.is_floating_point() ? others_ : counters_).push_back({weight->tensor.detach(), {}});
  }
}

void PooledStatistics::begin() {
  const auto keep = [](Kept& kept) { kept.before = kept.tensor.clone(); };
  for (Norm& norm : norms_) {
    keep(norm.mean), keep(norm.variance);
    norm.count = 0;
    norm.pooled_mean = at::zeros_like(norm.mean.tensor, at::kDouble);
    norm.pooled_sum = at::zeros_like(norm.mean.tensor, at::kDouble);
  }
  std::for_each(counters_.begin(), counters_.end(), keep);
  std::for_each(others_.begin(), others_.end(), keep);
}

void PooledStatistics::prepare() {
  const at::NoGradGuard no_gradients;
  for (const Norm& norm : norms_) norm.mean.tensor.zero_(), norm.variance.tensor.zero_();
  for (const Kept& counter : counters_) restore_one(counter.tensor, counter.before);
}

void PooledStatistics::take(const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_gradients;
  const std::vector<c10::IValue> values(inputs.begin(), inputs.end());
  const DimensionBindings sizes = bind_dimensions(program_, values);
  for (Norm& norm : norms_) {
    const std::vector<Dimension>& input = program_.value(norm.input).type.sizes;
    double count = 1;
    for (size_t place = 0; place < input.size(); ++place) {
      if (place != 1) count *= static_cast<double>(input[place].evaluate(sizes));
    }
    pool(norm, count);
  }
}

// Adds one part as Chan, Golub and LeVeque (1979) pool two samples.
void PooledStatistics::pool(Norm& norm, double count) const {
  const at::Tensor mean = norm.mean.tensor.to(at::kDouble).div_(norm.momentum);
  const at::Tensor variance = norm.variance.tensor.to(at::kDouble).div_(norm.momentum);
  const double all = norm.count + count;
  const at::Tensor apart = mean.sub(norm.pooled_mean);
  norm.pooled_sum.add_(variance, count - 1).addcmul_(apart, apart, norm.count * count / all);
  norm.pooled_mean.add_(apart, count / all);
  norm.count = all;
}

void PooledStatistics::finish() {
  const at::NoGradGuard no_gradients;
  const auto move = [](const Kept& running, const at::Tensor& seen, double momentum) {
    running.tensor.copy_(running.before.to(at::kDouble).mul_(1 - momentum).add_(seen, momentum));
  };
  for (const Norm& norm : norms_) {
    move(norm.mean, norm.pooled_mean, norm.momentum);
    move(norm.variance, norm.pooled_sum.div(norm.count - 1), norm.momentum);
  }
}

void PooledStatistics::restore() {
  const at::NoGradGuard no_gradients;
  for (const Norm& norm : norms_) {
    restore_one(norm.mean.tensor, norm.mean.before);
    restore_one(norm.variance.tensor, norm.variance.before);
  }
  for (const Kept& kept : counters_) restore_one(kept.tensor, kept.before);
  for (const Kept& kept : others_) restore_one(kept.tensor, kept.before);
}

}  // namespace lissome
