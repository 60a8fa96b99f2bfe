#include "lissome/data/image.h"

#include <algorithm>
#include <cmath>

#include "lissome/data/frame.h"
#include "lissome/data/image_library.h"

namespace lissome {
namespace {

constexpr int64_t kMostCoveringPixels = int64_t{1} << 24;

// The weights of red, green and blue in 1/65536, rounded as Pillow rounds.
uint8_t find_luma(const uint8_t* pixel) {
  return static_cast<uint8_t>((pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 0x8000U) >> 16);
}

Array separate_planes(const Pixels& pixels, int64_t channels) {
  Array planes = make_array(Dtype::u8, {channels, pixels.height, pixels.width});
  const auto count = static_cast<size_t>(pixels.height * pixels.width);
  auto* out = planes.data<uint8_t>();
  const uint8_t* from = pixels.bytes.data();
  if (channels == 1) {
    for (size_t i = 0; i < count; ++i) out[i] = find_luma(from + 3 * i);
    return planes;
  }
  for (size_t i = 0; i < count; ++i)
    for (size_t c = 0; c < 3; ++c) out[c * count + i] = from[3 * i + c];
  return planes;
}

}  // namespace

bool has_image_name(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return false;
  std::string ending = path.substr(dot + 1);
  for (char& letter : ending)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return ending == "png" || ending == "jpg" || ending == "jpeg";
}

Array decode_image(std::span<const std::byte> bytes, int64_t channels, const std::string& source) {
  LISSOME_CHECK(channels == 1 || channels == 3, channels, " channels");
  Pixels pixels;
  find_pixel_decoder()(bytes, source, &pixels);
  return separate_planes(pixels, channels);
}

Array fit_image(const Array& image, int64_t height, int64_t width, const std::string& source) {
  const int64_t channels = image.sizes.at(0), from_height = image.sizes.at(1), from_width = image.sizes.at(2);
  if (from_height == height && from_width == width) return image;
  // The side that needs the larger factor is met exactly, the other is at least as long as wanted.
  const bool by_height = height * from_width >= width * from_height;
  const int64_t new_height = by_height ? height : std::max(height, from_height * width / from_width);
  const int64_t new_width = by_height ? std::max(width, from_width * height / from_height) : width;
  if (new_height * new_width > kMostCoveringPixels)
    throw_error(ErrorKind::invalid_input, quote(source), ": an image of ", from_height, " x ", from_width,
                " pixels would become ", new_height, " x ", new_width, " to cover ", height, " x ", width, "; up to ",
                kMostCoveringPixels, " pixels are allowed. Cut it.");
  Array fitted = make_array(Dtype::u8, {channels, height, width});
  static thread_local FrameWorkspace workspace;
  Frame frame(image.data<uint8_t>(), channels, from_height, from_width, workspace);
  frame.resize(new_height, new_width);
  const auto half = [](int64_t rest) { return static_cast<int64_t>(std::nearbyint(static_cast<double>(rest) / 2)); };
  frame.crop(half(new_height - height), half(new_width - width), height, width);
  frame.write(fitted.data<uint8_t>());
  return fitted;
}

Array load_image(const std::string& path, int64_t channels, int64_t height, int64_t width) {
  const auto file = MappedFile::open(path);
  return fit_image(decode_image(file->bytes(), channels, path), height, width, path);
}

}  // namespace lissome
