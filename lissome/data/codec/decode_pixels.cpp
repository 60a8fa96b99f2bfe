// libspng and libjpeg-turbo do the decoding. Sizes are looked at before memory is taken, and what either library
// merely warns of counts as damage: a picture that is half grey is no sample.
#include "lissome/data/codec/decode_pixels.h"

#include <spng.h>
#include <turbojpeg.h>

#include <memory>

namespace lissome {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 26;
constexpr uint32_t kLongestSide = 1 << 16;
constexpr int kMostScans = 64;                       // of a JPEG; encoders make about ten
constexpr size_t kMostChunkBytes = size_t{1} << 24;  // of text and colour profiles in a PNG

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

// Each scan of a progressive JPEG runs over all of the picture.
int count_scans(std::span<const std::byte> bytes) {
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
  int scans = 0;
  for (size_t at = 2; at + 3 < bytes.size();) {
    const uint8_t marker = byte(at + 1);
    if (byte(at) != 0xFF || marker == 0xFF) {
      ++at;
    } else if (marker == 0xD9) {  // the end; what follows is not read
      return scans;
    } else if (marker <= 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {  // without a segment
      at += 2;
    } else {
      if (marker == 0xDA) ++scans;
      at += 2 + (size_t{byte(at + 2)} << 8 | byte(at + 3));
    }
  }
  return scans;
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
  if (const int scans = count_scans(bytes); scans > kMostScans)
    throw_error(ErrorKind::invalid_input, quote(source), ": the JPEG file has ", scans, " scans; up to ", kMostScans,
                " are allowed.");
  Pixels pixels{height, width, std::vector<uint8_t>(static_cast<size_t>(height) * static_cast<size_t>(width) * 3)};
  check(tjDecompress2(decoder.get(), data, bytes.size(), pixels.bytes.data(), width, 0, height, TJPF_RGB,
                      TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS));
  return pixels;
}

}  // namespace
}  // namespace lissome

void lissome_decode_pixels(std::span<const std::byte> bytes, const std::string& source, lissome::Pixels* pixels) {
  using namespace lissome;
  if (starts_with(bytes, "\x89PNG")) {
    *pixels = decode_png(bytes, source);
  } else if (starts_with(bytes, "\xFF\xD8")) {
    *pixels = decode_jpeg(bytes, source);
  } else {
    throw_error(ErrorKind::invalid_input, quote(source), ": the file is neither a PNG nor a JPEG file.");
  }
}
