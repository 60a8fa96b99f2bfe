// The mutator of targets that read files of one form or another.
#include <algorithm>
#include <cstring>

#include "tests/fuzz/byte_container.h"
#include "tests/fuzz/fuzz_hooks.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t limit, unsigned seed) {
  const std::string changed = lissome::change_container(std::string(reinterpret_cast<char*>(data), size), seed);
  const size_t length = std::min(changed.size(), limit);
  std::memcpy(data, changed.data(), length);
  return length;
}
