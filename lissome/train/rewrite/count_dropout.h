// Dropout without masks in memory.
#pragma once

#include <string_view>

#include "lissome/program.h"

namespace lissome {

// Replaces masks as autograd records them, bernoulli.p(like, keep) / keep multiplied with values of equal sizes in the
// forward and the backward pass, by lissome::dropout of these values, which reads a new last input, kDropoutSeed i64[].
// `program` then gives other random numbers of the same distribution. Returns the number of masks.
int count_dropout(Program& program);

inline constexpr std::string_view kDropoutSeed = "random.seed";
bool reads_dropout_seed(const Program& program);

}  // namespace lissome
