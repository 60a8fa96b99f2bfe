// Factors of sizes, symbolic ones included; see layout_factors.h.
#include "lissome/pass/layout_factors.h"

#include <algorithm>

namespace lissome {
namespace {

Dimension multiply(const Dimension& left, const Dimension& right) {
  return Dimension::combine(Dimension::Operation::multiply, left, right);
}

// Two sizes at a point where unrelated ones differ: each name is another large prime.
std::optional<int64_t> guess_quotient(const Dimension& size, const Dimension& divisor) {
  constexpr int64_t kPrimes[] = {1009, 1013, 1019, 1021, 1031, 1033};
  DimensionBindings bindings;
  for (const Dimension* one : {&size, &divisor}) {
    for (const std::string& name : one->names()) bindings.emplace(name, 0);
  }
  if (bindings.size() > std::size(kPrimes)) return std::nullopt;
  size_t next = 0;
  for (auto& [name, value] : bindings) value = kPrimes[next++];
  const auto above = size.try_evaluate(bindings), below = divisor.try_evaluate(bindings);
  if (!above || !below || *below <= 0 || *above % *below != 0) return std::nullopt;
  return *above / *below;
}

std::vector<int> flatten(const std::vector<std::vector<int>>& groups) {
  std::vector<int> all;
  for (const std::vector<int>& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace

LayoutFactors::LayoutFactors(const std::vector<Dimension>& sizes) {
  for (const Dimension& size : sizes) source_.push_back(size == Dimension(1) ? Group() : Group{add_factor(size)});
  now_ = source_;
}

int LayoutFactors::add_factor(Dimension size) {
  factors_.push_back({std::move(size), std::nullopt});
  return static_cast<int>(factors_.size()) - 1;
}

// Exact for every value of the names, or nothing.
std::optional<Dimension> LayoutFactors::divide(const Dimension& size, const Dimension& divisor) const {
  const auto is_quotient = [&](const Dimension& candidate) { return multiply(candidate, divisor) == size; };
  if (divisor.constant() && *divisor.constant() > 0) {
    const Dimension quotient = Dimension::combine(Dimension::Operation::floor_divide, size, divisor);
    return is_quotient(quotient) ? std::optional(quotient) : std::nullopt;
  }
  if (const auto number = guess_quotient(size, divisor); number && is_quotient(Dimension(*number)))
    return Dimension(*number);
  // Another factor, or a multiple of one.
  for (const Factor& factor : factors_) {
    const auto number = guess_quotient(size, multiply(divisor, factor.size));
    if (!number) continue;
    const Dimension candidate = multiply(factor.size, Dimension(*number));
    if (is_quotient(candidate)) return candidate;
  }
  return std::nullopt;
}

bool LayoutFactors::split(int factor, const Dimension& left, const Dimension& right) {
  const int first = add_factor(left), second = add_factor(right);
  for (std::vector<Group>* groups : {&source_, &now_}) {
    for (Group& group : *groups) {
      const auto found = std::find(group.begin(), group.end(), factor);
      if (found == group.end()) continue;
      const auto place = group.insert(group.erase(found), second);
      group.insert(place, first);
    }
  }
  return true;
}

std::optional<LayoutFactors::Group> LayoutFactors::take(std::vector<int>& sequence, size_t& next,
                                                        const Dimension& size) {
  Group group;
  Dimension product(1);
  while (!(product == size)) {
    if (next == sequence.size()) return std::nullopt;
    const int factor = sequence[next];
    const Dimension whole = factors_[static_cast<size_t>(factor)].size;
    const Dimension longer = multiply(product, whole);
    if (!(longer == size) && !divide(size, longer)) {
      const auto missing = divide(size, product);
      const auto rest = missing ? divide(whole, *missing) : std::nullopt;
      if (!rest) return std::nullopt;
      split(factor, *missing, *rest);
      const int second = static_cast<int>(factors_.size()) - 1;
      sequence[next] = second - 1;
      sequence.insert(sequence.begin() + static_cast<std::ptrdiff_t>(next) + 1, second);
      continue;
    }
    group.push_back(factor);
    product = longer;
    ++next;
  }
  return group;
}

bool LayoutFactors::reshape(const std::vector<Dimension>& sizes) {
  std::vector<int> sequence = flatten(now_);
  size_t next = 0;
  std::vector<Group> groups;
  for (const Dimension& size : sizes) {
    const auto group = take(sequence, next, size);
    if (!group) return false;
    groups.push_back(*group);
  }
  if (next != sequence.size()) return false;
  now_ = std::move(groups);
  return true;
}

bool LayoutFactors::permute(const std::vector<int64_t>& order) {
  if (order.size() != now_.size()) return false;
  std::vector<Group> groups;
  for (const int64_t dim : order) groups.push_back(now_.at(static_cast<size_t>(dim)));
  now_ = std::move(groups);
  return true;
}

bool LayoutFactors::select(int64_t dim, int64_t index) {
  const Group group = now_.at(static_cast<size_t>(dim));
  if (group.size() > 1) return false;
  if (group.empty() ? index != 0 && index != -1 : !factors_[static_cast<size_t>(group[0])].size.constant())
    return false;
  if (!group.empty()) {
    Factor& factor = factors_[static_cast<size_t>(group[0])];
    factor.index = index < 0 ? index + *factor.size.constant() : index;
  }
  now_.erase(now_.begin() + static_cast<std::ptrdiff_t>(dim));
  return true;
}

std::vector<Dimension> LayoutFactors::sizes_of(const std::vector<int>& factors) const {
  std::vector<Dimension> sizes;
  for (const int factor : factors) sizes.push_back(factors_[static_cast<size_t>(factor)].size);
  return sizes;
}

std::vector<Dimension> LayoutFactors::products_of(const std::vector<Group>& groups) const {
  std::vector<Dimension> sizes;
  for (const Group& group : groups) {
    Dimension product(1);
    for (const Dimension& size : sizes_of(group)) product = multiply(product, size);
    sizes.push_back(product);
  }
  return sizes;
}

int LayoutFactors::Way::count() const {
  return (split ? 1 : 0) + static_cast<int>(selections.size()) + (order ? 1 : 0) + (merge ? 1 : 0);
}

LayoutFactors::Way LayoutFactors::find_way() const {
  const auto is_single = [](const Group& group) { return group.size() == 1; };
  std::vector<int> factors = flatten(source_);
  const std::vector<int> last = flatten(now_);
  Way way;
  const bool picks =
      std::any_of(factors_.begin(), factors_.end(), [](const Factor& one) { return one.index.has_value(); });
  if (!picks && factors == last) {
    if (products_of(source_) != products_of(now_)) way.merge = products_of(now_);
    return way;
  }
  if (!std::all_of(source_.begin(), source_.end(), is_single)) way.split = sizes_of(factors);
  for (size_t i = 0; i < factors.size();) {
    const auto& index = factors_[static_cast<size_t>(factors[i])].index;
    if (!index) {
      ++i;
      continue;
    }
    way.selections.emplace_back(static_cast<int64_t>(i), *index);
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (factors != last) {
    way.order.emplace();
    for (const int factor : last) {
      way.order->push_back(std::find(factors.begin(), factors.end(), factor) - factors.begin());
    }
  }
  if (!std::all_of(now_.begin(), now_.end(), is_single)) way.merge = products_of(now_);
  return way;
}

}  // namespace lissome
