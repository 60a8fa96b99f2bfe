// Plans from hostile files: through the reader and its gate into a session that runs them, on kernels of every
// instruction set that this machine has. plan_case.h says what an input is, plan_mutator.cpp how it changes.
#include "lissome/measure.h"
#include "lissome/runtime/memory/arena_guard.h"
#include "lissome/runtime/plan/plan_io.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/session.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/plan/plan_case.h"

namespace {

using namespace lissome;

constexpr int64_t kMostMemory = int64_t{64} << 20;

RunCounts counts("plan");

// Whether every value is small enough for the plan to be run; sizes that do not follow are the session's to refuse.
bool is_small(const Plan& plan, const Sizes& extents) {
  for (const PlanValue& value : plan.values) {
    if (value.storage == Storage::constant) continue;  // small, else there would be no case
    const std::optional<Sizes> sizes = size_value(plan, value, extents);
    if (!sizes) continue;
    int64_t elements = 1;
    for (const int64_t size : *sizes) {
      if (size == 0) elements = 0;
      if (__builtin_mul_overflow(elements, size, &elements)) elements = INT64_MAX;
    }
    if (elements > kMostElements) return false;
  }
  return true;
}

std::vector<Array> make_inputs(const Plan& plan, const PlanCase& given) {
  std::vector<Array> inputs;
  for (const PlanInput& input : plan.inputs) {
    const PlanValue& value = plan.value(input.value);
    const Sizes sizes = size_value(plan, value, given.extents).value_or(Sizes(value.sizes.size(), 1));
    inputs.push_back(make_filled({value.dtype, sizes, given.data + inputs.size() / 2}));
  }
  return inputs;
}

// Memory for the outputs that ends with their last byte; nothing when their sizes do not follow.
std::vector<Array> make_places(const Plan& plan, const PlanCase& given) {
  std::vector<Array> places;
  for (const PlanOutput& output : plan.outputs) {
    Array& place = places.emplace_back();
    if (!is_value(output.value)) {
      if (std::holds_alternative<double>(output.literal)) place.dtype = Dtype::f64;
      if (std::holds_alternative<int64_t>(output.literal)) place.dtype = Dtype::i64;
      if (std::holds_alternative<bool>(output.literal)) place.dtype = Dtype::boolean;
      place = make_filled({place.dtype, {}, 5});
      continue;
    }
    const PlanValue& value = plan.value(output.value);
    place = make_filled({value.dtype, size_value(plan, value, given.extents).value_or(Sizes(value.sizes.size())), 5});
  }
  return places;
}

void run_plan(const PlanCase& given) {
  const auto plan = std::make_shared<Plan>(read_plan(make_model_file(given)));
  if (!is_small(*plan, given.extents)) {
    DimensionValues dimensions;
    for (size_t i = 0; i < plan->dimensions.size(); ++i)
      dimensions.push_back(given.extents.empty() ? 2 : given.extents[i % given.extents.size()]);
    if (!plan->needs_reference()) Binding(*plan, dimensions, given.threads);
    return counts.add_large();
  }
  const std::vector<Array> inputs = make_inputs(*plan, given), places = make_places(*plan, given);
  std::vector<TensorView> views, place_views;
  for (const Array& input : inputs) views.push_back(input.view());
  for (const Array& place : places) place_views.push_back(place.view());
  Session session(plan, {.threads = given.threads, .offload_folder = "/dev/shm"});
  for (int run = 0; run < given.runs; ++run) {
    session.run_into(views, place_views);
    for (const Array& place : places) read_all(place);
  }
  counts.add_run();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::optional<PlanCase> given = read_plan_case(as_text(data, size));
  if (!given) return -1;
  counts.add_execution();
  guard_arenas(true);
  mask_features(kLevels[given->level]);
  allocator_memory().set_limit(kMostMemory);
  return keep_what_runs(counts, [&] { run_plan(*given); });
}
