#include "lissome/data/call_sizes.h"

namespace lissome {
namespace {

constexpr int64_t kOtherSize = 16, kMostMore = 64;

int64_t clamp(const DimensionRange& range, int64_t wanted) {
  return std::max(range.least, std::min(range.most, wanted));
}

}  // namespace

CallSizes::CallSizes(std::vector<DimensionRange> dimensions, std::vector<std::vector<SizeFormula>> inputs,
                     std::vector<SizeFormula> requirements)
    : dimensions_(std::move(dimensions)),
      inputs_(std::move(inputs)),
      requirements_(std::move(requirements)),
      is_batch_(dimensions_.size(), false) {
  bool found = false;
  for (const std::vector<SizeFormula>& sizes : inputs_) {
    if (sizes.empty()) continue;
    const std::optional<size_t> dimension = find_dimension(sizes.front());
    if (dimension) is_batch_[*dimension] = true;
    if (found) continue;
    found = true;
    if (dimension) {
      const DimensionRange& range = dimensions_[*dimension];
      batch_ = {std::min(std::max<int64_t>(range.least, 1), range.most), range.most};
    } else {
      std::vector<int64_t> values;
      for (const DimensionRange& range : dimensions_) values.push_back(clamp(range, 1));
      const int64_t only = sizes.front()(values).value_or(1);
      batch_ = {only, only};
    }
  }
  raise_least_batch();
}

bool CallSizes::meets_requirements(std::span<const int64_t> values) const {
  return std::ranges::all_of(requirements_, [&](const SizeFormula& slack) { return slack(values).value_or(-1) >= 0; });
}

// All dimensions but the batch together, then each alone, go away from where they are usually.
std::vector<int64_t> CallSizes::choose_values(int64_t batch) const {
  const auto take = [&](size_t only, int64_t more) {
    std::vector<int64_t> values;
    for (size_t i = 0; i < dimensions_.size(); ++i) {
      const int64_t usual = kOtherSize + (only == dimensions_.size() || only == i ? more : 0);
      values.push_back(clamp(dimensions_[i], is_batch_[i] ? batch : usual));
    }
    return values;
  };
  for (size_t only = dimensions_.size() + 1; only-- > 0;) {
    for (int64_t more = 0; more <= kMostMore; ++more) {
      for (const int64_t sign : {1, -1}) {
        std::vector<int64_t> values = take(only, sign * more);
        if (meets_requirements(values)) return values;
      }
    }
  }
  return {};
}

void CallSizes::raise_least_batch() {
  if (requirements_.empty()) return;
  const int64_t last = std::min(batch_.most, batch_.least + kMostMore);
  for (int64_t batch = batch_.least; batch <= last; ++batch) {
    if (choose_values(batch).empty()) continue;
    batch_.least = batch;
    return;
  }
}

std::optional<size_t> CallSizes::find_dimension(const SizeFormula& size) const {
  // Where the size is a dimension, it is so at two points that no other dimension shares.
  std::vector<int64_t> first, second;
  for (size_t i = 0; i < dimensions_.size(); ++i) {
    first.push_back(2 + static_cast<int64_t>(i));
    second.push_back(3 + 3 * static_cast<int64_t>(i));
  }
  const std::optional<int64_t> at_first = size(first), at_second = size(second);
  for (size_t i = 0; i < dimensions_.size(); ++i) {
    if (at_first == first[i] && at_second == second[i]) return i;
  }
  return std::nullopt;
}

int64_t CallSizes::choose_batch(int64_t batch) const {
  if (batch == 0) return batch_.least;
  if (batch >= batch_.least && batch <= batch_.most) return batch;
  const std::string allowed = batch_.is_fixed() ? "only batches of " + std::to_string(batch_.least)
                              : batch_.most == INT64_MAX
                                  ? "batches of " + std::to_string(batch_.least) + " and more"
                                  : "batches of " + std::to_string(batch_.least) + " to " + std::to_string(batch_.most);
  throw_error(ErrorKind::usage, "a batch of ", batch, " was asked for; the model takes ", allowed);
}

std::vector<Sizes> CallSizes::choose(int64_t batch) const {
  const int64_t samples = choose_batch(batch);
  std::vector<int64_t> values = choose_values(samples);
  for (size_t i = values.size(); i < dimensions_.size(); ++i)
    values.push_back(clamp(dimensions_[i], is_batch_[i] ? samples : kOtherSize));
  std::vector<Sizes> chosen;
  for (const std::vector<SizeFormula>& sizes : inputs_) {
    Sizes& input = chosen.emplace_back();
    for (const SizeFormula& size : sizes) input.push_back(std::max<int64_t>(size(values).value_or(1), 0));
  }
  return chosen;
}

}  // namespace lissome
