// What numbers a mask of attention may hold, as far as the nodes that make it tell.
#pragma once

#include "lissome/pass/rewrite.h"

namespace lissome {

struct MaskNumbers {
  double largest = 0;         // no finite element is farther from 0; infinity where nothing says so
  bool has_infinity = false;  // elements of -inf may be among them
};

MaskNumbers find_mask_numbers(Rewriter& rewriter, const Argument& mask);

}  // namespace lissome
