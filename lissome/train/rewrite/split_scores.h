// Computes the scores of a classifier over many classes, such as the words of a language model, in blocks of rows. For
// steps with a memory budget in which scores, their log-softmax and their gradient would be the largest values.
#pragma once

#include "lissome/program.h"
#include "lissome/runtime.h"

namespace lissome {

// before: %scores = mm(%x, %turned); %l = log_softmax(%scores); %loss, %counted = nll_loss_forward(%l, %labels)
//         %d = _log_softmax_backward_data(nll_loss_backward(%one, %l, ...), %l)
//         %dw = mm(permute(%d), %x); %dx = mm(%d, %weight)
// after:  for each block of rows its scores, their logarithms and gradient, which are freed before the next block: %dx
//         is concatenated, %dw is summed on from block to block, the loss reads the element of each row at its label.
// Every row is computed as before. The sum over blocks has the bits of the whole sum for one kernel only, so `plan`, of
// this program, must have chosen that kernel for the products. `sizes`: of the largest batch. Splits nothing unless the
// blocks are equal at all sizes. Returns the number of blocks, 0 if nothing was split.
int split_scores(Program& program, const Plan& plan, const DimensionBindings& sizes);

}  // namespace lissome
