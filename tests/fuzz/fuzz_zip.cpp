// The zip reader: whatever the directory claims, members lie inside the file and unpack within their limits.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = lissome::write_input(data, size, ".zip");
  return lissome::expect_refusal_or_result([&] {
    const lissome::ZipReader reader = lissome::ZipReader::open(path);
    for (const lissome::ZipMember& member : reader.members()) {
      lissome::expect_refusal_or_result([&] { lissome::read_all(reader.view(member)); });
      lissome::expect_refusal_or_result([&] { reader.read_text(member, 1 << 20); });
    }
  });
}
