// Random numbers that are the same on every machine and library version: xoshiro256++ seeded by splitmix64.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace lissome {

class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t next();
  // Uniform in 0 .. bound - 1, without bias; bound 0 stands for 2^64.
  uint64_t next_below(uint64_t bound);
  double next_uniform();  // in (0, 1)
  double next_normal();   // mean 0, deviation 1

 private:
  std::array<uint64_t, 4> state_;
};

// Every order alike (Fisher and Yates).
template <typename T>
void shuffle_values(std::vector<T>* values, Random& random) {
  for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[random.next_below(i)]);
}

}  // namespace lissome
