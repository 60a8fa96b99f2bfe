// First values of weights. `smart` chooses by what the program does with each weight; the others fill all alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/program.h"

namespace lissome {

enum class Initializer : uint8_t {
  smart,  // Kaiming normal (fan_out) for convolutions and before ReLU; before tanh Xavier normal with its gain of 5/3;
          // else Xavier uniform
  uniform,           // in [-scale, scale], 0.05
  normal,            // of deviation `scale`, 0.02
  truncated_normal,  // the same, cut off at two deviations
  orthogonal,        // times `scale`, 1; what has more dimensions counts as rows of its first
};

// "smart", "truncated_normal", ...; nothing for another name.
std::optional<Initializer> find_initializer(std::string_view name);

struct InitializeOptions {
  Initializer initializer = Initializer::smart;
  std::optional<double> scale;  // not for smart
  uint64_t seed = 0;
};

struct InitializedWeight {
  std::string name;
  std::string_view rule;  // "kaiming_normal", "xavier_normal", "zeros", "ones", ...; "kept": nothing known of it
};

// Writes into the program's parameters, in their order, the same numbers for the same seed. Whatever the initializer,
// biases are zeros, weights of norms ones, and other parameters of fewer than two dimensions stay. Tied parameters are
// filled once. Throws invalid_input for a scale with smart, or one that is not above 0.
std::vector<InitializedWeight> initialize_weights(const Program& program, const InitializeOptions& options = {});

}  // namespace lissome
