// JSON: bounded depth and number of values, no duplicate keys, UTF-8. What is read survives being written and read
// again.
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lissome::expect_refusal_or_result([&] {
    const std::string written = lissome::parse_json(lissome::as_text(data, size), "fuzz.json", 64, 100'000).dump();
    if (lissome::parse_json(written, "again.json", 64, 100'000).dump() != written) std::abort();
  });
}
