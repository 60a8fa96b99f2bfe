#include "lissome/runtime/memory_plan.h"

#include <doctest/doctest.h>

#include <random>

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

}  // namespace

TEST_CASE("a chain needs the memory of two neighbours") {
  std::vector<PlannedBuffer> buffers;
  for (int i = 0; i < 10; ++i) buffers.push_back({1000, i, i + 1, 0});
  CHECK(plan_memory(buffers) == 2048);
  CHECK(verify_memory_plan(buffers, 2048).empty());
}

TEST_CASE("random lifetimes never overlap, and stay near the least possible") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<PlannedBuffer> buffers;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random() % 100);
      buffers.push_back({static_cast<int64_t>(random() % 5000), first, first + static_cast<int>(random() % 12), 0});
    }
    const int64_t bytes = plan_memory(buffers);
    CHECK(verify_memory_plan(buffers, bytes) == "");
    CHECK(bytes <= 1.35 * static_cast<double>(largest_live(buffers)));
  }
}

TEST_CASE("the judge sees overlaps and buffers outside of the arena") {
  CHECK(!verify_memory_plan({{100, 0, 2, 0}, {100, 2, 3, 64}}, 1024).empty());
  CHECK(verify_memory_plan({{100, 0, 2, 0}, {100, 3, 3, 64}}, 1024).empty());
  CHECK(!verify_memory_plan({{100, 0, 2, 960}}, 1024).empty());
  CHECK(!verify_memory_plan({{10, 0, 2, 8}}, 1024).empty());
}
