#include "lissome/data/image_library.h"

#include <dlfcn.h>

#include "lissome/own_folder.h"

// Defined only in programs that hold the decoder themselves, as unit tests do.
extern "C" [[gnu::weak]] void lissome_decode_pixels(std::span<const std::byte> bytes, const std::string& source,
                                                    lissome::Pixels* pixels);

namespace lissome {
namespace {

using Decoder = decltype(&lissome_decode_pixels);

Decoder load_pixel_decoder() {
  const std::string path = find_own_folder() + "liblissome_images.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library != nullptr ? dlsym(library, "lissome_decode_pixels") : nullptr;
  if (symbol == nullptr) {
    const char* const reason = dlerror();
    throw_error(ErrorKind::unsupported, "images cannot be decoded here: ", reason != nullptr ? reason : quote(path),
                "\nInstall liblissome_images.so beside liblissome_runtime.so, with libspng and libturbojpeg");
  }
  return reinterpret_cast<Decoder>(symbol);
}

}  // namespace

Decoder find_pixel_decoder() {
  if (&lissome_decode_pixels != nullptr) return lissome_decode_pixels;
  static const Decoder decoder = load_pixel_decoder();
  return decoder;
}

}  // namespace lissome
