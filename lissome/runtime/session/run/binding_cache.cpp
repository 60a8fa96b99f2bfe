// See binding_cache.h.
#include "lissome/runtime/session/run/binding_cache.h"

#include <algorithm>
#include <utility>

namespace lissome {

BindingCache::BindingCache(int most) : most_(static_cast<size_t>(std::max(most, 1))) {}

void BindingCache::write_key(std::span<const TensorView> inputs) {
  key_.clear();
  for (const TensorView& input : inputs) {
    key_.push_back(static_cast<int64_t>(input.dtype));
    key_.insert(key_.end(), input.sizes.begin(), input.sizes.end());
  }
}

Binding* BindingCache::find(std::span<const TensorView> inputs) {
  write_key(inputs);
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key_; });
  if (found == entries_.end()) return nullptr;
  const bool dense =
      std::all_of(inputs.begin(), inputs.end(), [](const TensorView& input) { return input.is_contiguous(); });
  if (!dense) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return found->binding.get();
}

Binding& BindingCache::add(std::span<const TensorView> inputs, std::unique_ptr<Binding> binding) {
  write_key(inputs);
  if (entries_.size() >= most_) entries_.pop_back();
  entries_.push_front({key_, std::move(binding)});
  return *entries_.front().binding;
}

}  // namespace lissome
