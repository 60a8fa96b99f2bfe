// Owners of memory: results of our steps, results that libtorch holds, views of both, and values that need none.
#include "lissome/train/budget/facts/value_placement.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "lissome/lower.h"
#include "lissome/train/budget/step_model.h"

using namespace lissome;

namespace {

// Measured for 2 samples, wanted for 8.
ValuePlacement place_for_eight(const Program& program, const std::vector<ForcedKernel>& forced) {
  LowerOptions options;
  options.effort = Effort::fast;
  options.forced = forced;
  const Plan plan = lower_program(program, options);
  const std::vector<Sizes> wanted = {{8, 4}};
  return place_values(LoweredStep({&program, &plan, 1, {}}), find_footprint(plan, wanted, 1),
                      SizePrediction(program, {at::ones({2, 4})}, wanted));
}

size_t place_of(const Program& program, const char* name) { return static_cast<size_t>(*program.find_value(name)); }

}  // namespace

TEST_CASE("a view lies in the memory of what it views, in the arena and in libtorch") {
  const Program program = parse_program(R"(
    dim n in 1..8
    input %x: f32[n, 4]
    %e: f32[n, 4] = aten::exp(%x)
    %t: f32[4, n] = aten::transpose.int(%e, 0, 1)
    %y: f32[4, n] = aten::neg(%t)
    return %y
  )");
  const size_t x = place_of(program, "x"), e = place_of(program, "e"), t = place_of(program, "t");
  for (const bool libtorch : {false, true}) {
    const ValuePlacement placed = place_for_eight(
        program, libtorch ? std::vector<ForcedKernel>{{"*", "reference"}} : std::vector<ForcedKernel>{});
    CHECK(placed.owner[x] == StepModel::kNowhere);
    CHECK(placed.owner[e] == static_cast<int>(e));
    CHECK(placed.owner[t] == static_cast<int>(e));
    CHECK(placed.bytes[e] == 8 * 4 * 4);
    CHECK(placed.bytes[t] == 0);
    CHECK(placed.held[e] == libtorch);
    CHECK_FALSE(placed.joined[e]);
  }
}

TEST_CASE("a value between the nodes of one step of ours takes no memory") {
  const Program program = parse_program(R"(
    dim n in 1..8
    input %x: f32[n, 4]
    %e: f32[n, 4] = aten::exp(%x)
    %y: f32[n, 4] = aten::neg(%e)
    return %y
  )");
  const ValuePlacement placed = place_for_eight(program, {});
  const size_t e = place_of(program, "e");
  CHECK(placed.joined[e]);
  CHECK(placed.bytes[e] == 0);
  CHECK_FALSE(placed.held[e]);
}
