// Forms of a program whose gradients can be recorded: as ops whose derivatives are ops alone.
#pragma once

#include "lissome/program.h"

namespace lissome {

// Results stay as they are, and so do gradients.
//   max, min: amax, amin
//   median, nanmedian, prod, cumprod, whose derivatives read numbers out of tensors: their values y, and to those
//     sum(J * (x - x')), where x' has the elements of x and no gradient: zeros whose gradient is J
//   what was written through detach() into x, copy(x, detach_copy(y)): x - x' + y, whose gradient is all of x
//   slices, selected parts and diagonals written into complex tensors: the same of pairs of numbers
//   one_hot of a number of classes: ones scattered into zeros
//   attention with fewer heads of keys than of queries (enable_gqa): with the heads repeated
//   embedding with sparse gradients: with dense ones, the same with their zeros
//   dropout: of an input in the order of rows. PyTorch draws its mask in the order in which the input lies in memory,
//     which a program does not know
void use_recordable_forms(Program& program);

}  // namespace lissome
