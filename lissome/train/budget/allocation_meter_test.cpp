// Every byte that a tensor holds is counted once, from its first to its last moment.
#include "lissome/train/budget/allocation_meter.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <thread>

#include "lissome/measure.h"
#include "lissome/program.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

constexpr int64_t kMetered = 1 << 20;

int64_t live() { return allocator_memory().live(); }

}  // namespace

TEST_CASE("tensors count from their making to their end, views not at all") {
  meter_allocations();
  const int64_t before = live();
  {
    at::Tensor tensor = at::empty({kMetered}, at::kByte);
    CHECK(live() - before == kMetered);
    CHECK(is_metered(tensor));
    const at::Tensor view = tensor.narrow(0, 5, 7);
    CHECK(is_metered(view));
    CHECK(live() - before == kMetered);
    tensor = at::Tensor();
    CHECK(live() - before == kMetered);  // the view holds it
  }
  CHECK(live() == before);
  CHECK_FALSE(is_metered(at::empty({0})));
}

TEST_CASE("the peak is the most that was alive at once") {
  meter_allocations();
  allocator_memory().reset_peak();
  const int64_t before = live();
  for (int i = 0; i < 3; ++i) at::empty({kMetered}, at::kByte);
  CHECK(allocator_memory().peak() - before == kMetered);
  const at::Tensor first = at::empty({kMetered}, at::kByte), second = at::empty({kMetered}, at::kByte);
  CHECK(allocator_memory().peak() - before == 2 * kMetered);
}

TEST_CASE("resizing counts the new size and drops the old one") {
  meter_allocations();
  const int64_t before = live();
  at::Tensor tensor = at::empty({1000}, at::kByte);
  tensor.resize_({kMetered});
  CHECK(live() - before == kMetered);
}

TEST_CASE("many threads lose no byte") {
  meter_allocations();
  const int64_t before = live();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      for (int i = 1; i < 2000; ++i) at::empty({i}, at::kByte);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(live() == before);
}

TEST_CASE("a limit refuses what is above it, with the type that devices use, and leaves with its scope") {
  meter_allocations();
  const int64_t before = live();
  {
    const AllocationLimit limit(before + kMetered);
    const at::Tensor fits = at::empty({kMetered}, at::kByte);
    CHECK_THROWS_AS(at::empty({1}, at::kByte), c10::OutOfMemoryError);
    EXPECT_ERROR(over_budget, allocator_memory().take(1, "an arena"), "an arena of 1 B does not fit");
  }
  CHECK(at::empty({kMetered}, at::kByte).numel() == kMetered);
  CHECK(live() == before);
}

TEST_CASE("a program that meets the limit is over budget, says where, and runs again without it") {
  const Program program = parse_program(
      "input %x: f32[512, 512]\n"
      "%y: f32[512, 512] = aten::mm(%x, %x)\n"
      "%z: f32[512, 512] = aten::mm(%y, %x)\n"
      "return %z\n");
  const at::Tensor x = at::ones({512, 512});
  meter_allocations();
  {
    const AllocationLimit limit(live() + kMetered + kMetered / 2);
    EXPECT_ERROR(over_budget, interpret(program, {x}), "aten::mm", "1.0 MiB does not fit");
  }
  CHECK(interpret(program, {x}).at(0).toTensor()[3][4].item().toDouble() == 512 * 512);
}
