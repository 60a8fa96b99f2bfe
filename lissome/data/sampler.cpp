// The orders. Shuffling is Fisher and Yates'; drawing without replacement takes the largest of u^(1/weight) (Efraimidis
// and Spirakis 2006), which gives the odds of drawing one by one.
#include "lissome/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lissome/base.h"
#include "lissome/data/random.h"

namespace lissome {
namespace {

std::vector<int64_t> count_up(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

std::vector<int64_t> draw_with_replacement(const WeightedOrder& order, int64_t draws, Random& random) {
  std::vector<double> sums(order.weights.size());
  std::partial_sum(order.weights.begin(), order.weights.end(), sums.begin());
  std::vector<int64_t> drawn(static_cast<size_t>(draws));
  for (int64_t& sample : drawn) {
    const double target = random.next_uniform() * sums.back();
    const auto found = std::upper_bound(sums.begin(), sums.end(), target);
    // Rounding may put the target at the very end; the last weight above 0 is meant.
    const auto last = std::lower_bound(sums.begin(), sums.end(), sums.back());
    sample = std::min(found, last) - sums.begin();
  }
  return drawn;
}

std::vector<int64_t> draw_without_replacement(const WeightedOrder& order, int64_t draws, Random& random) {
  std::vector<std::pair<double, int64_t>> keys;
  for (size_t i = 0; i < order.weights.size(); ++i) {
    const double uniform = random.next_uniform();
    if (order.weights[i] > 0) keys.emplace_back(-std::log(uniform) / order.weights[i], static_cast<int64_t>(i));
  }
  std::partial_sort(keys.begin(), keys.begin() + draws, keys.end());
  std::vector<int64_t> drawn;
  for (int64_t i = 0; i < draws; ++i) drawn.push_back(keys[static_cast<size_t>(i)].second);
  return drawn;
}

// A last batch that is not full stays the last.
void shuffle_batches(std::vector<int64_t>& samples, int64_t batch, Random& random) {
  std::vector<int64_t> order = count_up(static_cast<int64_t>(samples.size()) / batch);
  shuffle_values(&order, random);
  std::vector<int64_t> shuffled;
  shuffled.reserve(samples.size());
  for (const int64_t index : order)
    shuffled.insert(shuffled.end(), samples.begin() + index * batch, samples.begin() + (index + 1) * batch);
  shuffled.insert(shuffled.end(), samples.begin() + static_cast<int64_t>(shuffled.size()), samples.end());
  samples = std::move(shuffled);
}

std::vector<int64_t> bucket(const LengthBucketedOrder& order, int64_t batch, Random& random) {
  std::vector<int64_t> samples = count_up(static_cast<int64_t>(order.lengths.size()));
  shuffle_values(&samples, random);
  const auto count = static_cast<int64_t>(samples.size());
  const auto pool = static_cast<size_t>(order.pool > count / batch ? count : order.pool * batch);
  for (size_t first = 0; first < samples.size(); first += pool) {
    const auto end = samples.begin() + static_cast<int64_t>(std::min(samples.size(), first + pool));
    std::stable_sort(samples.begin() + static_cast<int64_t>(first), end, [&](int64_t a, int64_t b) {
      return order.lengths[static_cast<size_t>(a)] < order.lengths[static_cast<size_t>(b)];
    });
  }
  shuffle_batches(samples, batch, random);
  return samples;
}

void check_weights(const WeightedOrder& order, int64_t samples) {
  if (static_cast<int64_t>(order.weights.size()) != samples)
    throw_error(ErrorKind::usage, order.weights.size(), " weights were given for ", samples,
                " samples; one each is needed.");
  int64_t positive = 0;
  for (size_t i = 0; i < order.weights.size(); ++i) {
    const double weight = order.weights[i];
    if (!(weight >= 0) || !std::isfinite(weight))
      throw_error(ErrorKind::usage, "the weight of sample ", i, " is ", weight,
                  "; finite numbers of at least 0 are allowed.");
    positive += weight > 0 ? 1 : 0;
  }
  if (positive == 0) throw_error(ErrorKind::usage, "all ", samples, " weights are 0; one above 0 is needed.");
  const int64_t draws = order.draws == 0 ? samples : order.draws;
  if (!order.replacement && draws > positive)
    throw_error(ErrorKind::usage, draws, " draws without replacement were asked for from ", positive,
                " samples with a weight above 0. Draw fewer, or with replacement.");
  if (order.draws < 0)
    throw_error(ErrorKind::usage, order.draws, " draws were asked for; at least 1 is needed, 0 stands for all.");
}

void check_subset(const std::vector<int64_t>& subset, int64_t samples) {
  for (const int64_t sample : subset)
    if (sample < 0 || sample >= samples)
      throw_error(ErrorKind::usage, "the subset names sample ", sample, "; the samples are 0 to ", samples - 1, ".");
}

struct Part {
  int64_t first, count;
};
Part cut_batch(int64_t count, int64_t parts, int64_t part, int64_t least) {
  const int64_t filled = std::min(parts, std::max<int64_t>(count / least, 1));
  if (part >= filled) return {count, 0};
  const int64_t first = count * part / filled;
  return {first, count * (part + 1) / filled - first};
}

}  // namespace

int64_t EpochPlan::batches() const {
  return samples.empty() ? 0 : (static_cast<int64_t>(samples.size()) - 1) / batch + 1;
}

std::span<const int64_t> EpochPlan::take(int64_t index) const {
  LISSOME_CHECK(index >= 0 && index < batches(), "batch ", index, " of ", batches());
  const int64_t first = index * batch;
  const Part cut = cut_batch(std::min(batch, static_cast<int64_t>(samples.size()) - first), parts, part, least);
  return std::span(samples).subspan(static_cast<size_t>(first + cut.first), static_cast<size_t>(cut.count));
}

Sampler::Sampler(int64_t samples, SamplerOptions options) : samples_(samples), options_(std::move(options)) {
  if (samples < 1) throw_error(ErrorKind::invalid_input, "there are no samples; at least one is needed.");
  if (options_.batch < 1)
    throw_error(ErrorKind::usage, "a batch of ", options_.batch, " was asked for; at least 1 is needed.");
  if (options_.subset) {
    check_subset(*options_.subset, samples);
    samples_ = static_cast<int64_t>(options_.subset->size());
    if (samples_ == 0) throw_error(ErrorKind::usage, "the subset is empty; at least one sample is needed.");
  }
  if (const auto* weighted = std::get_if<WeightedOrder>(&options_.order)) check_weights(*weighted, samples_);
  if (const auto* bucketed = std::get_if<LengthBucketedOrder>(&options_.order)) {
    if (static_cast<int64_t>(bucketed->lengths.size()) != samples_)
      throw_error(ErrorKind::usage, bucketed->lengths.size(), " lengths were given for ", samples_,
                  " samples; one each is needed.");
    if (bucketed->pool < 1)
      throw_error(ErrorKind::usage, "a pool of ", bucketed->pool, " batches was asked for; at least 1 is needed.");
  }
  LISSOME_CHECK(options_.part >= 0 && options_.part < options_.parts && options_.least >= 1, "part ", options_.part,
                " of ", options_.parts);
  if (batches() == 0)
    throw_error(ErrorKind::usage, drawn(), " samples fill no batch of ", options_.batch,
                ", and batches that are not full are left out (drop_last). Make the batch smaller.");
}

int64_t Sampler::drawn() const {
  const auto* weighted = std::get_if<WeightedOrder>(&options_.order);
  return weighted != nullptr && weighted->draws > 0 ? weighted->draws : samples_;
}

int64_t Sampler::batches() const {
  return options_.drop_last ? drawn() / options_.batch : (drawn() - 1) / options_.batch + 1;
}

int64_t Sampler::count(int64_t index) const {
  const int64_t whole = std::min(options_.batch, drawn() - index * options_.batch);
  return cut_batch(whole, options_.parts, options_.part, options_.least).count;
}

EpochPlan Sampler::plan(int64_t epoch) const {
  // Two rounds of mixing keep (seed 0, epoch 1) and (seed 1, epoch 0) apart.
  Random random(Random(options_.seed).next() + static_cast<uint64_t>(epoch));
  EpochPlan plan{{}, options_.batch, options_.parts, options_.part, options_.least};
  std::visit(
      [&]<typename Order>(const Order& order) {
        if constexpr (std::is_same_v<Order, WeightedOrder>) {
          plan.samples = order.replacement ? draw_with_replacement(order, drawn(), random)
                                           : draw_without_replacement(order, drawn(), random);
        } else if constexpr (std::is_same_v<Order, LengthBucketedOrder>) {
          plan.samples = bucket(order, options_.batch, random);
        } else {
          plan.samples = count_up(samples_);
          if constexpr (std::is_same_v<Order, ShuffledOrder>) shuffle_values(&plan.samples, random);
        }
      },
      options_.order);
  if (options_.drop_last) plan.samples.resize(static_cast<size_t>(batches() * options_.batch));
  if (options_.subset)
    for (int64_t& sample : plan.samples) sample = (*options_.subset)[static_cast<size_t>(sample)];
  return plan;
}

}  // namespace lissome
