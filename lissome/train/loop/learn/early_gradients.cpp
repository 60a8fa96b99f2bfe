// See early_gradients.h.
#include "lissome/train/loop/learn/early_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace lissome {
namespace {

constexpr int64_t kFirstBucket = int64_t{1} << 20;   // bytes; small, so that sums begin soon
constexpr int64_t kUsualBucket = int64_t{25} << 20;  // until times are measured
constexpr int64_t kMeasuredSteps = 3;                // the cut is made before the third, by the times of the second
const std::string kEnds = "bucket_ends";

std::vector<int64_t> list_bytes(const NamedTensors& parameters, const std::vector<size_t>& order) {
  std::vector<int64_t> bytes;
  for (const size_t parameter : order)
    bytes.push_back(parameters[parameter].second.numel() * static_cast<int64_t>(sizeof(float)));
  return bytes;
}

// The ends of rank 0, sent as a number for each gradient that says whether a bucket ends with it.
BucketEnds share_ends(Group& group, const BucketEnds& ends, size_t gradients) {
  const at::Tensor is_end = at::zeros({static_cast<int64_t>(gradients)}, at::kLong);
  for (const size_t end : ends) is_end[static_cast<int64_t>(end) - 1] = 1;
  group.share(is_end, "the buckets of gradients");
  BucketEnds shared;
  for (size_t i = 0; i < gradients; ++i) {
    if (is_end.const_data_ptr<int64_t>()[i] != 0 || i + 1 == gradients) shared.push_back(i + 1);
  }
  return shared;
}

}  // namespace

EarlyGradients::EarlyGradients(Group& group, Dtype dtype, std::optional<int64_t> bucket, const NamedTensors& parameters,
                               std::vector<size_t> order, const std::vector<at::Tensor>& state)
    : GradientExchange(group, state),
      dtype_(dtype),
      order_(std::move(order)),
      position_(order_.size()),
      views_(order_.size()),
      measures_(!bucket),
      steps_to_measure_(measures_ ? kMeasuredSteps : 0),
      ready_(order_.size()) {
  const std::vector<int64_t> bytes = list_bytes(parameters, order_);
  int64_t elements = 0;
  for (const int64_t of_one : bytes) elements += of_one / static_cast<int64_t>(sizeof(float));
  const at::Tensor flat = at::zeros({elements}, at::kFloat);
  int64_t first = 0;
  for (size_t position = 0; position < order_.size(); ++position) {
    const at::Tensor& parameter = parameters[order_[position]].second;
    views_[order_[position]] = flat.narrow(0, first, parameter.numel()).view(parameter.sizes());
    position_[order_[position]] = position;
    first += parameter.numel();
  }
  const int64_t most = bucket.value_or(kUsualBucket);
  buckets_.emplace(group, dtype, flat, bytes);
  buckets_->cut(cut_by_size(bytes, std::min(kFirstBucket, most), most));
}

void EarlyGradients::begin(const UpdatePart& part, int64_t step, std::optional<double>) {
  const at::NoGradGuard no_gradients;
  // A bucket leaves with the factor of its rank in it, because in 16 bits it could not be scaled afterwards.
  const at::Tensor weight = at::tensor({part.weight}, at::kDouble);
  group().sum(weight, "the samples" + name_step(step));
  running_.step = step;
  running_.weight = weight.item<double>();
  // A mean over no labels is NaN and must not count.
  running_.factor = part.samples > 0 && part.weight > 0 ? part.weight / running_.weight : 0;
  running_.taken.assign(order_.size(), false);
  if (steps_to_measure_ > 0 && --steps_to_measure_ == 0) cut_by_measurement();
  buckets_->begin("the gradients" + name_step(step));
  running_.watch = Stopwatch();
}

void EarlyGradients::take(size_t parameter, const at::Tensor& gradient) {
  const at::NoGradGuard no_gradients;
  const size_t position = position_[parameter];
  ready_[position] = running_.watch.seconds();
  running_.taken[parameter] = true;
  fill_view(parameter, gradient);
  buckets_->complete(position);
}

void EarlyGradients::fill_view(size_t parameter, const at::Tensor& gradient) {
  if (running_.factor == 0 || !gradient.defined()) {
    views_[parameter].zero_();
  } else {
    views_[parameter].copy_(gradient).mul_(running_.factor);
  }
}

UpdatePart EarlyGradients::finish(const std::vector<at::Tensor>& gradients, const UpdatePart& part) {
  const at::NoGradGuard no_gradients;
  const double seconds = running_.watch.seconds();
  std::vector<double> numbers = {running_.factor > 0 ? part.loss * part.weight : 0.0, static_cast<double>(part.samples),
                                 part.interrupted ? 1.0 : 0.0, part.save_due ? 1.0 : 0.0};
  const size_t first_flag = numbers.size();  // for each parameter, whether it has a gradient
  for (size_t i = 0; i < views_.size(); ++i) {
    const at::Tensor stayed = i < gradients.size() ? gradients[i] : at::Tensor();
    numbers.push_back(running_.taken[i] || stayed.defined() ? 1 : 0);
    if (running_.taken[i]) continue;
    fill_view(i, stayed);
    ready_[position_[i]] = seconds;
    buckets_->complete(position_[i]);
  }
  buckets_->finish();
  const at::Tensor shared = at::tensor(numbers, at::kDouble);
  group().sum(shared, "the loss" + name_step(running_.step));
  const auto* sums = shared.const_data_ptr<double>();
  set_results(views_, sums + first_flag,
              {.loss = sums[0] / running_.weight,
               .weight = running_.weight,
               .samples = static_cast<int64_t>(sums[1]),
               .interrupted = sums[2] > 0,
               .save_due = sums[3] > 0});
  return last();
}

// The cut of rank 0 is everybody's.
void EarlyGradients::cut_by_measurement() {
  const LinkCost cost = measure_link(group(), dtype_);
  const BucketEnds ends = share_ends(group(), cut_by_time(buckets_->bytes(), ready_, cost), order_.size());
  buckets_->cut(ends);
  const double last = ready_.empty() ? 0 : *std::ranges::max_element(ready_);
  double bytes = 0;
  for (const int64_t of_one : buckets_->bytes()) bytes += static_cast<double>(of_one);
  note_ = "gradients leave in " + std::to_string(ends.size()) + " buckets: by measured times, the last sum ends " +
          format_duration(predict_end(buckets_->bytes(), ready_, cost, ends) - last) +
          " after the backward pass, of sums that take " +
          format_duration(static_cast<double>(ends.size()) * cost.start + bytes * cost.per_byte);
}

NamedTensors EarlyGradients::collect(int64_t) const {
  if (!measures_ || steps_to_measure_ > 0) return {};
  const std::vector<int64_t> ends(buckets_->ends().begin(), buckets_->ends().end());
  return {{kEnds, at::tensor(ends, at::kLong)}};
}

void EarlyGradients::restore(const NamedTensors& state) {
  for (const auto& [name, tensor] : state) {
    if (name != kEnds || !measures_) continue;
    BucketEnds ends;
    const bool whole = tensor.scalar_type() == at::kLong && tensor.dim() == 1 && tensor.is_contiguous();
    for (int64_t i = 0; whole && i < tensor.numel(); ++i)
      ends.push_back(static_cast<size_t>(tensor.const_data_ptr<int64_t>()[i]));
    if (!is_cut(ends, order_.size()))
      throw_error(ErrorKind::invalid_input, "the snapshot does not cut ", order_.size(), " gradients into buckets");
    buckets_->cut(ends);
    steps_to_measure_ = 0;
  }
}

}  // namespace lissome
