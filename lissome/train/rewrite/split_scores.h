// The scores of a classifier over many classes, as a language model's over its words, in blocks of rows: for steps that
// fit memory, where scores, their log-softmax and their gradient would be the largest of all.
#pragma once

#include "lissome/program.h"
#include "lissome/runtime.h"

namespace lissome {

// before: %scores = mm(%x, %turned); %l = log_softmax(%scores); %loss, %counted = nll_loss_forward(%l, %labels)
//         %d = _log_softmax_backward_data(nll_loss_backward(%one, %l, ...), %l)
//         %dw = mm(permute(%d), %x); %dx = mm(%d, %weight)
// after:  for each block of rows its scores, their logarithms and gradient, gone before the next block: %dx is put
//         together, %dw goes on from block to block, the loss reads what each row has at its label.
// Every row is made as before. That a sum over rows made in blocks has the bits of the whole one holds for the kernel
// that `plan`, of this program, must therefore have chosen for the products. `sizes` are those of the largest batch.
// Blocks are equal at all sizes, else nothing is split. Returns how many there are, 0 where nothing was split.
int split_scores(Program& program, const Plan& plan, const DimensionBindings& sizes);

}  // namespace lissome
