// The files of a folder of images, as the array that a model takes.
#pragma once

#include <span>

#include "lissome/data.h"

namespace lissome {

// dataset->image_files become the column of the one input, bytes [samples, channels, height, width], decoded by all
// processors. With `skip_bad`, samples whose file cannot be read are left out, which a note says. Throws invalid_input:
// a model that takes something else, or a damaged file, the first in order; over_budget: more than half of the
// machine's memory.
void decode_images(Dataset* dataset, std::span<const DataSignature> inputs, bool skip_bad);

}  // namespace lissome
