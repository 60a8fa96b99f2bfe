// safetensors: a JSON header with offsets into the rest of the file.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = lissome::write_input(data, size, ".safetensors");
  return lissome::expect_refusal_or_result([&] {
    for (const lissome::NamedArray& named : lissome::load_safetensors(path)) lissome::read_all(named.array);
  });
}
