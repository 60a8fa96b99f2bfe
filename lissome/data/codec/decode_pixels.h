// What liblissome_images.so gives: PNG and JPEG files as pixels. A library of its own, which is loaded when the first
// image is read, so that a finished model needs neither libspng nor libjpeg-turbo on its machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lissome/base.h"

namespace lissome {

// Red, green and blue of each pixel, row after row.
struct Pixels {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> bytes;
};

}  // namespace lissome

// `source` names the file in errors. Throws the errors of decode_image(), see lissome/data/image.h.
extern "C" void lissome_decode_pixels(std::span<const std::byte> bytes, const std::string& source,
                                      lissome::Pixels* pixels);
