// Where values lie, and which bindings stay.
#include "lissome/runtime/session/run/run_memory.h"

#include <doctest/doctest.h>

#include "lissome/runtime/session/run/binding_cache.h"

using namespace lissome;

namespace {

constexpr PlanValueId kInput{0}, kConstant{1}, kState{2}, kImage{3};

PlanValue make_sized(std::string name, Storage storage, std::vector<SizeExpression> sizes, int array = -1) {
  return {std::move(name), storage, PlanKind::tensor, Dtype::f32, true, std::move(sizes), Format::row_major, array};
}

// No step: an input [n], a constant [2], a state [3] and an input of 2x3 pixels in 2 channels, channels last.
Plan make_stepless_plan() {
  Plan plan;
  plan.dimensions = {{"n", 1, 8}};
  plan.arrays = {{"constant", false, make_array(Dtype::f32, {2})}, {"state", false, make_array(Dtype::f32, {3})}};
  plan.values = {make_sized("x", Storage::input, {SizeExpression::parse("n", plan.dimensions)}),
                 make_sized("constant", Storage::constant, {2}, 0), make_sized("state", Storage::state, {3}, 1),
                 make_sized("image", Storage::input, {1, 2, 2, 3})};
  plan.values[3].format = Format::channels_last;
  plan.inputs = {{"x", kInput}, {"image", kImage}};
  return plan;
}

std::vector<TensorView> make_views(int64_t n) { return {{Dtype::f32, {n}, {1}, nullptr}}; }

}  // namespace

TEST_CASE("constants lie in the plan, state in a copy, inputs where the caller has them") {
  const Plan plan = make_stepless_plan();
  RunMemory memory(plan);
  Binding binding(plan, {5}, 1);
  memory.place_arrays(binding);
  memory.place_arena(binding);
  CHECK(memory.address_of(binding, kConstant) == plan.arrays[0].array.data<std::byte>());
  CHECK(memory.address_of(binding, kState) != plan.arrays[1].array.data<std::byte>());
  CHECK(memory.address_of(binding, kState) == memory.arrays()[1].data<std::byte>());
  float values[5] = {1, 2, 3, 4, 5};
  memory.place(binding, kInput, values);
  const TensorView view = memory.view_of(binding, kInput);
  CHECK(view.data == values);
  CHECK(view.sizes == Sizes{5});
  CHECK(memory.state_bytes() == 12);
  CHECK(memory.count_arrays().weights == 8);
  CHECK(memory.count_arrays().state == 12);
}

TEST_CASE("a value is copied in row order, whatever its own is") {
  const Plan plan = make_stepless_plan();
  RunMemory memory(plan);
  Binding binding(plan, {5}, 1);
  float image[12], row_major[12];
  for (int i = 0; i < 12; ++i) image[i] = static_cast<float>(i);  // by pixel, then channel
  memory.place(binding, kImage, image);
  memory.copy_to(reinterpret_cast<std::byte*>(row_major), binding, kImage);
  for (int channel = 0; channel < 2; ++channel) {
    for (int pixel = 0; pixel < 6; ++pixel) CHECK(row_major[channel * 6 + pixel] == image[pixel * 2 + channel]);
  }
}

TEST_CASE("a binding is found by the sizes of inputs until too many others were used since") {
  const Plan plan = make_stepless_plan();
  BindingCache cache(2);
  const auto add = [&](int64_t n) -> Binding& {
    return cache.add(make_views(n), std::make_unique<Binding>(plan, DimensionValues{n}, 1));
  };
  CHECK(cache.find(make_views(1)) == nullptr);
  Binding& one = add(1);
  CHECK(cache.find(make_views(1)) == &one);
  CHECK(cache.find(make_views(2)) == nullptr);
  add(2);
  CHECK(cache.find(make_views(1)) == &one);
  add(3);  // in place of the one of 2, which was used before that of 1
  CHECK(cache.find(make_views(2)) == nullptr);
  CHECK(cache.find(make_views(1)) == &one);
  int visited = 0;
  cache.for_each([&](const Binding&) { ++visited; });
  CHECK(visited == 2);
  std::vector<TensorView> spread = make_views(1);
  spread[0].sizes = {2}, spread[0].strides = {2};
  Binding& dense = add(2);
  CHECK(cache.find(spread) == nullptr);
  CHECK(cache.find(make_views(2)) == &dense);
}
