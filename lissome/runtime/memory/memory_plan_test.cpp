#include "lissome/runtime/memory/memory_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "lissome/runtime/memory/search_memory.h"

using namespace lissome;

namespace {

// The most bytes alive at one time, each buffer rounded up as the arena does.
int64_t largest_live(const std::vector<PlannedBuffer>& buffers) {
  int64_t largest = 0;
  for (int step = 0; step < 200; ++step) {
    int64_t live = 0;
    for (const PlannedBuffer& buffer : buffers) {
      if (buffer.first_step <= step && step <= buffer.last_step) live += (buffer.bytes + 63) / 64 * 64;
    }
    largest = std::max(largest, live);
  }
  return largest;
}

std::vector<PlannedBuffer> make_random(std::mt19937& random, int count, unsigned steps, unsigned life, unsigned bytes) {
  std::vector<PlannedBuffer> buffers;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % steps);
    buffers.push_back({static_cast<int64_t>(random() % bytes), first, first + static_cast<int>(random() % life), 0});
  }
  return buffers;
}

// At every step exactly `units` times 64 bytes are alive, in pieces of random size and life.
std::vector<PlannedBuffer> make_crowded(std::mt19937& random, int units, int steps) {
  std::vector<PlannedBuffer> buffers;
  for (int step = 0; step < steps; ++step) {
    int64_t free = units;
    for (const PlannedBuffer& buffer : buffers) free -= buffer.last_step >= step ? buffer.bytes / 64 : 0;
    while (free > 0) {
      const auto size = 1 + static_cast<int64_t>(random() % std::min<uint64_t>(3, static_cast<uint64_t>(free)));
      buffers.push_back({size * 64, step, std::min(steps - 1, step + static_cast<int>(random() % 4)), 0});
      free -= size;
    }
  }
  return buffers;
}

// Whether `bytes` are enough: every place of every buffer is tried.
bool fits(std::vector<PlannedBuffer>& buffers, size_t placed, int64_t bytes) {
  if (placed == buffers.size()) return true;
  PlannedBuffer& buffer = buffers[placed];
  const auto size = [](const PlannedBuffer& one) { return (one.bytes + 63) / 64 * 64; };
  for (buffer.offset = 0; buffer.offset + size(buffer) <= bytes; buffer.offset += 64) {
    const bool free = std::none_of(
        buffers.begin(), buffers.begin() + static_cast<std::ptrdiff_t>(placed), [&](const PlannedBuffer& other) {
          return buffer.first_step <= other.last_step && other.first_step <= buffer.last_step &&
                 buffer.offset < other.offset + size(other) && other.offset < buffer.offset + size(buffer);
        });
    if (free && fits(buffers, placed + 1, bytes)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a chain needs the memory of two neighbours") {
  std::vector<PlannedBuffer> buffers;
  for (int i = 0; i < 10; ++i) buffers.push_back({1000, i, i + 1, 0});
  const PlannedArena arena = plan_memory(buffers);
  CHECK(arena.bytes == 2048);
  CHECK(arena.optimal);
  CHECK(verify_memory_plan(buffers, 2048).empty());
}

TEST_CASE("random lifetimes never overlap, and stay near the least possible") {
  std::mt19937 random(3);
  double sum = 0;
  for (int round = 0; round < 50; ++round) {
    const std::vector<PlannedBuffer> wanted = make_random(random, 60, 100, 12, 5000);
    std::vector<PlannedBuffer> buffers = wanted;
    const PlannedArena arena = plan_memory(buffers);
    CHECK(verify_memory_plan(buffers, arena.bytes) == "");
    CHECK(arena.least_bytes == largest_live(wanted));
    CHECK(arena.bytes >= arena.least_bytes);
    CHECK(arena.optimal == (arena.bytes == arena.least_bytes));
    const double ratio = static_cast<double>(arena.bytes) / static_cast<double>(arena.least_bytes);
    CHECK(ratio <= 1.005);
    sum += ratio;
  }
  CHECK(sum / 50 <= 1.0002);
}

TEST_CASE("many small buffers do not keep the order of the large ones from being annealed") {
  std::mt19937 random(4);
  double sum = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<PlannedBuffer> buffers = make_random(random, 60, 100, 12, 5'000'000);
    const std::vector<PlannedBuffer> small = make_random(random, 540, 100, 30, 1000);
    buffers.insert(buffers.end(), small.begin(), small.end());
    const PlannedArena arena = plan_memory(buffers);
    CHECK(verify_memory_plan(buffers, arena.bytes) == "");
    sum += static_cast<double>(arena.bytes) / static_cast<double>(arena.least_bytes);
  }
  CHECK(sum / 10 <= 1.005);
}

TEST_CASE("small buffers alone are placed without an order to anneal") {
  std::mt19937 random(7);
  std::vector<PlannedBuffer> buffers = make_random(random, 2000, 100, 90, 1000);
  const PlannedArena arena = plan_memory(buffers);
  CHECK(verify_memory_plan(buffers, arena.bytes) == "");
  CHECK(static_cast<double>(arena.bytes) <= 1.05 * static_cast<double>(arena.least_bytes));
}

TEST_CASE("few buffers that leave no byte free are placed in the least memory") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<PlannedBuffer> buffers = make_crowded(random, 6, 6);
    const PlannedArena arena = plan_memory(buffers);
    CHECK(arena.optimal);
    CHECK(arena.bytes == 6 * 64);
    CHECK(verify_memory_plan(buffers, arena.bytes) == "");
  }
}

TEST_CASE("the search finds what trying every place finds, and proves when there is nothing") {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    std::vector<PlannedBuffer> buffers = make_crowded(random, 5, 5);
    const MemorySearch found = search_memory(buffers, INT64_MAX);
    REQUIRE(found.exhausted);
    REQUIRE(found.offsets.size() == buffers.size());
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].offset = found.offsets[i];
    CHECK(verify_memory_plan(buffers, found.bytes) == "");
    CHECK(!fits(buffers, 0, found.bytes - 64));
    const MemorySearch nothing = search_memory(buffers, found.bytes);
    CHECK(nothing.exhausted);
    CHECK(nothing.offsets.empty());
  }
}

TEST_CASE("buffers of no bytes and none at all need no memory") {
  std::vector<PlannedBuffer> buffers;
  CHECK(plan_memory(buffers).bytes == 0);
  buffers = {{0, 0, 3, 0}, {100, 1, 1, 0}, {0, 1, 2, 0}};
  CHECK(plan_memory(buffers).bytes == 128);
  CHECK(verify_memory_plan(buffers, 128) == "");
}

TEST_CASE("the judge sees overlaps and buffers outside of the arena") {
  CHECK(!verify_memory_plan({{100, 0, 2, 0}, {100, 2, 3, 64}}, 1024).empty());
  CHECK(verify_memory_plan({{100, 0, 2, 0}, {100, 3, 3, 64}}, 1024).empty());
  CHECK(!verify_memory_plan({{100, 0, 2, 960}}, 1024).empty());
  CHECK(!verify_memory_plan({{10, 0, 2, 8}}, 1024).empty());
}
