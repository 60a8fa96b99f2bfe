// libspng and libjpeg-turbo do the decoding. Sizes are looked at before memory is taken, and what either library
// merely warns of counts as damage: a picture that is half grey is no sample.
#include "lissome/data/image.h"

#include <spng.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "lissome/data/frame.h"

namespace lissome {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 26;
constexpr int64_t kMostCoveringPixels = int64_t{1} << 24;
constexpr uint32_t kLongestSide = 1 << 16;
constexpr size_t kMostChunkBytes = size_t{1} << 24;  // of text and colour profiles in a PNG

// Three bytes a pixel, row after row.
struct Pixels {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> bytes;
};

void check_image_sizes(int64_t height, int64_t width, const std::string& source) {
  if (height < 1 || width < 1 || height > kLongestSide || width > kLongestSide || height * width > kMostPixels)
    throw_error(ErrorKind::invalid_input, quote(source), ": the image has ", height, " x ", width, " pixels; up to ",
                kMostPixels, " with sides of up to ", kLongestSide, " are allowed.");
}

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](char expected, std::byte seen) { return static_cast<std::byte>(expected) == seen; });
}

Pixels decode_png(std::span<const std::byte> bytes, const std::string& source) {
  const auto check = [&](int status) {
    if (status != 0)
      throw_error(ErrorKind::invalid_input, quote(source), ": the PNG file is damaged: ", spng_strerror(status), ".");
  };
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(0), spng_ctx_free);
  if (context == nullptr) throw_error(ErrorKind::over_budget, "there is no memory to decode ", quote(source), ".");
  check(spng_set_image_limits(context.get(), kLongestSide, kLongestSide));
  check(spng_set_chunk_limits(context.get(), kMostChunkBytes, kMostChunkBytes));
  check(spng_set_png_buffer(context.get(), bytes.data(), bytes.size()));
  spng_ihdr header{};
  check(spng_get_ihdr(context.get(), &header));
  check_image_sizes(header.height, header.width, source);
  Pixels pixels{header.height, header.width, {}};
  size_t size = 0;
  check(spng_decoded_image_size(context.get(), SPNG_FMT_RGB8, &size));
  LISSOME_CHECK(size == static_cast<size_t>(pixels.height * pixels.width * 3));
  pixels.bytes.resize(size);
  check(spng_decode_image(context.get(), pixels.bytes.data(), size, SPNG_FMT_RGB8, 0));
  return pixels;
}

Pixels decode_jpeg(std::span<const std::byte> bytes, const std::string& source) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  if (decoder == nullptr) throw_error(ErrorKind::over_budget, "there is no memory to decode ", quote(source), ".");
  const auto check = [&](int status) {
    if (status != 0)
      throw_error(ErrorKind::invalid_input, quote(source),
                  ": the JPEG file is damaged: ", tjGetErrorStr2(decoder.get()), ".");
  };
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, sampling = 0, colors = 0;
  check(tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &sampling, &colors));
  check_image_sizes(height, width, source);
  if (colors == TJCS_CMYK || colors == TJCS_YCCK)
    throw_error(ErrorKind::unsupported, quote(source),
                ": the JPEG file is in CMYK; only RGB and grey are read. Convert it.");
  Pixels pixels{height, width, std::vector<uint8_t>(static_cast<size_t>(height) * static_cast<size_t>(width) * 3)};
  check(tjDecompress2(decoder.get(), data, bytes.size(), pixels.bytes.data(), width, 0, height, TJPF_RGB,
                      TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS));
  return pixels;
}

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
  if (starts_with(bytes, "\x89PNG")) return separate_planes(decode_png(bytes, source), channels);
  if (starts_with(bytes, "\xFF\xD8")) return separate_planes(decode_jpeg(bytes, source), channels);
  throw_error(ErrorKind::invalid_input, quote(source), ": the file is neither a PNG nor a JPEG file.");
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
