// Dropout without masks in memory.
#pragma once

#include <optional>

#include "lissome/program.h"

namespace lissome {

// Masks as autograd records them, bernoulli.p(like, keep) / keep, multiplied with values of their sizes in the forward
// and the backward pass -> lissome::dropout of each, which reads a new last input, "random.seed" i64[]. Returns that
// input; nothing where there is no dropout. `program` gives other random numbers than before, as likely ones.
std::optional<ValueId> count_dropout(Program& program);

}  // namespace lissome
