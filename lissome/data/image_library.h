// Finds liblissome_images.so.
#pragma once

#include "lissome/data/codec/decode_pixels.h"

namespace lissome {

// Loads the library from the folder of this one when it is first asked for. Throws unsupported where it, or a library
// that it needs, is missing.
decltype(&lissome_decode_pixels) find_pixel_decoder();

}  // namespace lissome
