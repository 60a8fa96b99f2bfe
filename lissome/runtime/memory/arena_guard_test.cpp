#include "lissome/runtime/memory/arena_guard.h"

#include <doctest/doctest.h>

#include "lissome/runtime/memory/forbid_memory.h"

using namespace lissome;

TEST_CASE("buffers of a guarded arena lie apart, whatever their lives") {
  std::vector<PlannedBuffer> buffers = {{100, 0, 0}, {0, 1, 1}, {64, 2, 2}, {1, 0, 9}};
  const PlannedArena arena = place_apart(buffers);
  for (size_t i = 0; i < buffers.size(); ++i) {
    CHECK(buffers[i].offset % 64 == 0);
    const int64_t next = i + 1 < buffers.size() ? buffers[i + 1].offset : arena.bytes;
    CHECK(buffers[i].offset + buffers[i].bytes + 64 <= next);
  }
}

TEST_CASE("sums of buffers that no machine holds do not overflow") {
  std::vector<PlannedBuffer> buffers(64, PlannedBuffer{int64_t{1} << 59, 0, 0});
  CHECK(place_apart(buffers).bytes == int64_t{1} << 60);
}

#if defined(LISSOME_FORBIDS_MEMORY)
extern "C" int __asan_address_is_poisoned(const volatile void* address);

TEST_CASE("what lies between buffers is forbidden until the arena is planned anew") {
  std::vector<PlannedBuffer> buffers = {{100, 0, 0}, {30, 0, 0}};
  Arena arena;
  arena.reserve(place_apart(buffers).bytes);
  forbid_gaps(arena, buffers);
  CHECK(__asan_address_is_poisoned(arena.data() + 99) == 0);
  CHECK(__asan_address_is_poisoned(arena.data() + 100) != 0);
  CHECK(__asan_address_is_poisoned(arena.data() + buffers[1].offset - 1) != 0);
  CHECK(__asan_address_is_poisoned(arena.data() + buffers[1].offset) == 0);
  buffers = {{arena.bytes(), 0, 0, 0}};
  forbid_gaps(arena, buffers);
  CHECK(__asan_address_is_poisoned(arena.data() + 100) == 0);
}
#endif
