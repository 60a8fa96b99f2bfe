// .npz and .npy: headers are Python literals, members may be deflated.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const bool is_zip = size > 1 && data[0] == 'P' && data[1] == 'K';
  if (!is_zip) {
    return lissome::expect_refusal_or_result(
        [&] { lissome::read_all(lissome::parse_npy(std::as_bytes(std::span(data, size)), "fuzz.npy", nullptr)); });
  }
  const std::string path = lissome::write_input(data, size, ".npz");
  return lissome::expect_refusal_or_result([&] {
    for (const lissome::NamedArray& named : lissome::load_arrays(path)) lissome::read_all(named.array);
  });
}
