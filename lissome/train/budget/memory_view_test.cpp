// Where a step's memory goes, and what is called a leak.
#include "lissome/train/budget/memory_view.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "lissome/train/step/training_step.h"

using namespace lissome;

TEST_CASE("a leak is reported once, when memory has grown for five moments in a row after settling") {
  LeakCheck check;
  const int64_t mebibyte = 1 << 20;
  CHECK_FALSE(check.observe(10 * mebibyte));
  CHECK_FALSE(check.observe(90 * mebibyte));
  for (int i = 1; i < 5; ++i) CHECK_FALSE(check.observe((90 + i) * mebibyte));
  CHECK(check.observe(95 * mebibyte));
  CHECK(check.growth() == 5 * mebibyte);
  CHECK_FALSE(check.observe(96 * mebibyte));
}

TEST_CASE("memory that goes up and down, or grows by little, is no leak") {
  LeakCheck wave, drip;
  for (int i = 0; i < 100; ++i) {
    CHECK_FALSE(wave.observe(int64_t{i % 4} << 24));
    CHECK_FALSE(drip.observe(1000 + i));
  }
}

TEST_CASE("the arena of a step is traced: what is alive where most is, and by what was made") {
  const Program program = parse_program(
      "dim n in 1..64\n"
      "input %x: f32[n, 64]\n"
      "parameter @w: f32[256, 64]\n"
      "parameter @v: f32[64, 256]\n"
      "%h: f32[n, 256] = aten::linear(%x, @w)\n"
      "%g: f32[n, 256] = aten::gelu(%h)\n"
      "%y: f32[n, 64] = aten::linear(%g, @v)\n"
      "%s: f32[] = aten::sum(%y)\n"
      "return %s\n");
  TrainingStep step(program, {at::ones({3, 64})}, {.threads = 1});
  const std::vector<at::Tensor> inputs = {at::ones({32, 64})};
  step.run(inputs);
  const MemoryTimeline timeline = step.trace_arena(inputs);
  REQUIRE(timeline.peak_step >= 0);
  const int64_t peak = timeline.total(timeline.peak_step);
  // What the backward pass needs of the forward one: h and g.
  CHECK(peak >= 2 * 32 * 256 * 4);
  CHECK(peak <= timeline.reserved);
  CHECK(timeline.reserved == step.session().memory().arena);
  int64_t held = timeline.scratch[static_cast<size_t>(timeline.peak_step)];
  for (const HeldValue& value : timeline.at_peak) held += value.bytes;
  CHECK(held == peak);
  int64_t placed = 0;
  for (const MemoryPlace& place : list_memory_places(step.session().plan(), timeline)) placed += place.bytes;
  CHECK(placed == timeline.values[static_cast<size_t>(timeline.peak_step)]);
}
