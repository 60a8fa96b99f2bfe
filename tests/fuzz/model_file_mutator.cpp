// The mutator of fuzz_model_file: one member of the list changes, and its length follows.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/fuzz/byte_container.h"
#include "tests/fuzz/fuzz_hooks.h"
#include "tests/fuzz/random.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t limit, unsigned seed) {
  const std::string bytes(reinterpret_cast<char*>(data), size);
  lissome::FuzzRandom random(seed);
  std::string changed;
  if (bytes.starts_with("PK")) {
    changed = lissome::change_container(bytes, seed);
  } else {
    std::vector<std::string> members;
    for (size_t at = 0; at + 2 <= size;) {
      const size_t length = std::min<size_t>(data[at] | data[at + 1] << 8, size - at - 2);
      members.push_back(bytes.substr(at + 2, length));
      at += 2 + length;
    }
    if (members.empty()) members.emplace_back();
    std::string& member = random.pick(members);
    member = member.starts_with('{') ? lissome::change_json_text(member, static_cast<unsigned>(random.next()))
                                     : lissome::change_bytes(member);
    for (const std::string& kept : members) {
      changed += static_cast<char>(kept.size());
      changed += static_cast<char>(kept.size() >> 8);
      changed += kept;
    }
  }
  const size_t length = std::min(changed.size(), limit);
  std::memcpy(data, changed.data(), length);
  return length;
}
