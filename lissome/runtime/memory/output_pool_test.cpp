#include "lissome/runtime/memory/output_pool.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <thread>

#include "lissome/measure.h"

namespace lissome {
namespace {

constexpr int64_t kLarge = 1 << 20;

TEST_CASE("a block that nobody holds serves the next output of its size, and no other") {
  const int64_t before = allocator_memory().live();
  {
    OutputPool pool;
    std::shared_ptr<void> first = pool.take(kLarge);
    CHECK(reinterpret_cast<uintptr_t>(first.get()) % 64 == 0);
    const void* address = first.get();
    const std::shared_ptr<void> second = pool.take(kLarge);
    CHECK(second.get() != address);  // the first is held
    std::thread([&] { first.reset(); }).join();
    const std::shared_ptr<void> third = pool.take(kLarge);
    CHECK(third.get() == address);
    CHECK(allocator_memory().live() == before + 2 * kLarge);
  }
  CHECK(allocator_memory().live() == before);
}

TEST_CASE("outputs of another size give up what is kept, and blocks outlive their pool") {
  const int64_t before = allocator_memory().live();
  std::shared_ptr<void> held;
  {
    OutputPool pool;
    pool.take(kLarge).reset();
    CHECK(allocator_memory().live() == before + kLarge);
    held = pool.take(2 * kLarge);
    CHECK(allocator_memory().live() == before + 2 * kLarge);
    pool.take(100).reset();  // small ones are not kept
    CHECK(allocator_memory().live() == before + 2 * kLarge);
  }
  CHECK(allocator_memory().live() == before + 2 * kLarge);
  static_cast<char*>(held.get())[2 * kLarge - 1] = 1;
  held.reset();
  CHECK(allocator_memory().live() == before);
}

}  // namespace
}  // namespace lissome
