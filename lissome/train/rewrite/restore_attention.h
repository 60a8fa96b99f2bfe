// Turns attention that a model spells out into the op whose backward pass keeps no scores.
#pragma once

#include "lissome/program.h"

namespace lissome {

// softmax(q k^T * scale + mask) v -> scaled_dot_product_attention, as in inference, before gradients are recorded: for
// n tokens a head then keeps n numbers for the backward pass in place of n^2. Weights stay, though no node may read one
// by its name any more: gradients go by the names of weights. Where there is no attention, or dropout stands inside,
// `program` stays as it is. Returns the number of ops that were made.
int restore_attention(Program& program);

}  // namespace lissome
