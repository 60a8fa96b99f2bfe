// Initial values of weights. `smart` chooses by the use of each weight in the program; the others fill all alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/program.h"

namespace lissome {

enum class Initializer : uint8_t {
  smart,    // Kaiming normal (fan_out) for convolutions and before ReLU, Xavier normal with gain 5/3 before tanh, else
            // Xavier uniform
  uniform,  // in [-scale, scale]; default scale 0.05
  normal,   // with deviation `scale`; default 0.02
  truncated_normal,  // normal, cut off at two deviations
  orthogonal,        // times `scale`, default 1; a weight of more dimensions is taken as rows of its first dimension
};

// Finds an initializer by its name, such as "smart" or "truncated_normal"; empty for another name.
std::optional<Initializer> find_initializer(std::string_view name);
std::string_view initializer_name(Initializer initializer);

struct InitializeOptions {
  Initializer initializer = Initializer::smart;
  std::optional<double> scale;  // not for smart
  uint64_t seed = 0;
};

struct InitializedWeight {
  std::string name;
  std::string_view
      rule;  // "kaiming_normal", "xavier_normal", "zeros", "ones", ...; "kept": the weight's use is unknown
};

// Fills the program's parameters in their order; equal seeds give equal numbers. With every initializer, biases become
// zeros, weights of norms become ones, and other parameters of fewer than two dimensions stay. Tied parameters are
// filled once. Throws invalid_input for a scale with smart and for a scale that is not above 0.
std::vector<InitializedWeight> initialize_weights(const Program& program, const InitializeOptions& options = {});

}  // namespace lissome
