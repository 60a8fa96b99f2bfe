// Attention that a model spells out becomes the op whose backward pass keeps no scores.
#pragma once

#include "lissome/program.h"

namespace lissome {

// softmax(q k^T * scale + mask) v -> scaled_dot_product_attention, as in inference, before gradients are recorded: for
// n tokens a head then keeps n numbers for the backward pass in place of n^2. `program` itself where there is none of
// that; where dropout stands between, it stays as it is.
Program restore_attention(const Program& program);

}  // namespace lissome
