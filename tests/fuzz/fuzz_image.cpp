// PNG and JPEG files, decoded in colour and grey and fitted.
#include "lissome/data/image.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lissome;
  for (const int64_t channels : {1, 3})
    expect_refusal_or_result([&] {
      const Array image = decode_image({reinterpret_cast<const std::byte*>(data), size}, channels, "image");
      read_all(image);
      if (image.elements() < 1 << 20) read_all(fit_image(image, 5, 3, "image"));
    });
  return 0;
}
