// The mutators' own random numbers: a mutation depends on libFuzzer's seed alone, so that a run can be repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lissome {

class FuzzRandom {
 public:
  explicit FuzzRandom(uint64_t seed) : state_(seed) {}
  // splitmix64
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // 0 to count - 1; 0 where there is nothing to choose from.
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(next() % count); }
  bool once_in(size_t count) { return below(count) == 0; }
  template <typename List>
  auto& pick(List& list) {
    return list[below(std::size(list))];
  }

 private:
  uint64_t state_;
};

}  // namespace lissome
