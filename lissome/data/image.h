// PNG and JPEG files as arrays of bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lissome/base.h"

namespace lissome {

// By its ending: .png, .jpg, .jpeg, in capitals too.
bool has_image_name(const std::string& path);

// u8 [channels, height, width] of a PNG or JPEG file; 3 channels are red, green, blue, 1 is their luma (ITU-R 601, as
// Pillow's "L"). Transparency is dropped, 16 bits become 8, orientation marks are not followed. `source` names the file
// in errors. Throws invalid_input (neither format, damaged, cut off, more than 2^26 pixels), unsupported (JPEG in
// CMYK).
Array decode_image(std::span<const std::byte> bytes, int64_t channels, const std::string& source);

// The image so enlarged or shrunk that it just covers height x width, its middle cut out: torchvision's Resize to the
// shorter side, then CenterCrop. Bytes, rounded to nearest. Throws invalid_input for an image so narrow that it would
// have to become larger than 2^24 pixels.
Array fit_image(const Array& image, int64_t height, int64_t width, const std::string& source);

// Decodes and fits the image of a file.
Array load_image(const std::string& path, int64_t channels, int64_t height, int64_t width);

}  // namespace lissome
