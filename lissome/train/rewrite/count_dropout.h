// Dropout without masks in memory.
#pragma once

#include <string_view>

#include "lissome/program.h"

namespace lissome {

// Masks as autograd records them, bernoulli.p(like, keep) / keep, multiplied with values of their sizes in the forward
// and the backward pass -> lissome::dropout of each, which reads a new last input, kDropoutSeed i64[]. `program` gives
// other random numbers than before, as likely ones. Returns how many masks there were.
int count_dropout(Program& program);

inline constexpr std::string_view kDropoutSeed = "random.seed";
bool reads_dropout_seed(const Program& program);

}  // namespace lissome
