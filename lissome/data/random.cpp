// xoshiro256++ by Blackman and Vigna, as published; normal numbers by Box and Muller.
#include "lissome/data/random.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace lissome {

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9E3779B97F4A7C15;
    uint64_t mixed = seed;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    word = mixed ^ mixed >> 31;
  }
}

uint64_t Random::next() {
  const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::next_below(uint64_t bound) {
  if (bound == 0) return next();
  // The lowest 2^64 mod bound values would come up once more often than the others.
  const uint64_t surplus = (0 - bound) % bound;
  while (true) {
    const uint64_t value = next();
    if (value >= surplus) return value % bound;
  }
}

double Random::next_uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }

double Random::next_normal() {
  const double radius = std::sqrt(-2 * std::log(next_uniform()));
  return radius * std::cos(2 * std::numbers::pi * next_uniform());
}

}  // namespace lissome
