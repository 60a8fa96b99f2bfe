// The container of a .pt2: members, their JSON, and what kind of file it is when it is none.
#include <nlohmann/json.hpp>

#include "lissome/program/pt2/archive.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = lissome::write_input(data, size, ".pt2");
  return lissome::expect_refusal_or_result([&] { lissome::open_pt2(path); });
}
