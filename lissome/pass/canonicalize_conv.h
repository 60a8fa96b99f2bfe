// Part of canonicalize: the spellings of convolutions.
#pragma once

#include "lissome/pass/rewrite.h"

namespace lissome {

// conv1d/2d/3d with numbers or "same"/"valid" as padding, and conv_transpose1d/2d/3d -> convolution. True when the node
// at `position` was one that has such a form.
bool canonicalize_conv(Rewriter& rewriter, int position);

}  // namespace lissome
