// Rules of a plan as a whole, each broken once in a plan that is good otherwise. A plan may come from anybody: what is
// refused here must never reach a kernel. Rules of single steps: step_schema_*_test.cpp.
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "lissome/measure.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/plan/plan_io.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/session.h"
#include "tests/expect_error.h"

using namespace lissome;

// Positions of steps, arrays and blocks are no values.
static_assert(!std::is_convertible_v<int, PlanValueId> && !std::is_convertible_v<PlanValueId, int>);

namespace {

PlanValue make_value(std::string name, Storage storage, std::vector<SizeExpression> sizes) {
  PlanValue value;
  value.name = std::move(name), value.storage = storage, value.sizes = std::move(sizes), value.sized = true;
  return value;
}

constexpr PlanValueId kX{0}, kFirst{1}, kY{2}, kTotal{3};  // of make_plan()
constexpr PlanValueId kAdded{4};

// y = a copy of the first row of x; total <- y.
Plan make_plan() {
  Plan plan;
  plan.dimensions = {{"n", 1, 8}};
  const SizeExpression n = SizeExpression::parse("n", plan.dimensions);
  plan.values = {make_value("x", Storage::input, {n, 4}), make_value("first", Storage::view, {1, 4}),
                 make_value("y", Storage::arena, {1, 4}), make_value("total", Storage::state, {1, 4})};
  plan.values[3].array = 0;
  plan.arrays = {{"total", false, make_array(Dtype::f32, {1, 4})}};
  plan.inputs = {{"x", kX}};
  plan.outputs = {{"y", kY, {}}};
  PlanStep step;
  step.kernel = "view";
  step.attributes.set("form", std::string("slice"));
  step.attributes.set("dim", int64_t{0});
  step.attributes.set("start", int64_t{0});
  step.operands = {kX}, step.results = {kFirst};
  plan.steps.push_back(step);
  step.kernel = "copy", step.attributes = {};
  step.operands = {kFirst}, step.results = {kY};
  plan.steps.push_back(step);
  plan.writes = {{kTotal, kY}};
  return plan;
}

void run_plan(const Plan& plan) {
  Session session(std::make_shared<Plan>(plan), {.threads = 1});
  const Array x = make_array(Dtype::f32, {2, 4});
  session.run(std::vector<TensorView>{x.view()});
}

struct Break {
  const char* words;  // of the message
  std::function<void(Plan&)> apply;
};

const std::vector<Break>& list_breaks() {
  static const std::vector<Break> breaks = {
      {"there is no device 'fpga'", [](Plan& plan) { plan.device = "fpga"; }},
      {"there is no device 'cuda:-1'", [](Plan& plan) { plan.device = "cuda:-1"; }},
      {"cannot run on cuda:0", [](Plan& plan) { plan.device = "cuda:0"; }},
      {"sizes where n % 2 == 1, not for n = 2",
       [](Plan& plan) {
         plan.requirements = {{"n % 2 == 1", SizeExpression::parse("Min(n % 2 - 1, -(n % 2) + 1)", plan.dimensions)}};
       }},
      {"sizes where m > 3, not for n = 2",
       [](Plan& plan) { plan.requirements = {{"m > 3", SizeExpression::parse("m - 4", plan.dimensions)}}; }},
      {"100001 requirements, at most 100000",
       [](Plan& plan) { plan.requirements.resize(100'001, {"n > 0", SizeExpression::parse("n", plan.dimensions)}); }},
      {"two dimensions are called 'n'", [](Plan& plan) { plan.dimensions.push_back({"n", 1, 8}); }},
      {"lies in 8..1", [](Plan& plan) { plan.dimensions[0] = {"n", 8, 1}; }},
      {"lies in -1..8", [](Plan& plan) { plan.dimensions[0].minimum = -1; }},
      {"only inputs and held values are numbers", [](Plan& plan) { plan.values[3].kind = PlanKind::integer; }},
      {"is of kind boolean, must be a tensor",
       [](Plan& plan) {
         plan.values.push_back(make_value("flag", Storage::input, {}));
         plan.values.back().kind = PlanKind::boolean, plan.values.back().dtype = Dtype::boolean;
         plan.inputs.push_back({"flag", kAdded});
         plan.steps[1].operands = {kAdded};
       }},
      {"has 65 dimensions", [](Plan& plan) { plan.values[2].sizes.assign(65, 1); }},
      {"has a size of -4", [](Plan& plan) { plan.values[2].sizes[1] = -4; }},
      {"is larger than", [](Plan& plan) { plan.values[2].sizes = {int64_t{1} << 30, int64_t{1} << 30, 0}; }},
      {"is larger than", [](Plan& plan) { plan.values[2].sizes = {int64_t{1} << 62, 8}; }},
      {"two inputs are called 'x'",
       [](Plan& plan) {
         plan.values.push_back(make_value("again", Storage::input, {1}));
         plan.inputs.push_back({"x", kAdded});
       }},
      {"is stored as something else", [](Plan& plan) { plan.values[0].storage = Storage::arena; }},
      {"input 'x' has no sizes", [](Plan& plan) { plan.values[0].sized = false; }},
      {"is a integer stored as f32",
       [](Plan& plan) { plan.values[0].sizes = {}, plan.values[0].kind = PlanKind::integer; }},
      {"there is no value 9", [](Plan& plan) { plan.inputs[0].value = PlanValueId{9}; }},
      {"value total has no array", [](Plan& plan) { plan.values[3].array = 1; }},
      {"its array f32[1, 4]", [](Plan& plan) { plan.values[3].sizes = {4, 1}; }},
      {"its array f32[1, 4]", [](Plan& plan) { plan.values[3].dtype = Dtype::i32; }},
      {"belongs to another value too",
       [](Plan& plan) {
         plan.values.push_back(make_value("same", Storage::constant, {1, 4}));
         plan.values.back().array = 0;
       }},
      {"there is no kernel 'nothing'", [](Plan& plan) { plan.steps[1].kernel = "nothing"; }},
      {"makes nothing", [](Plan& plan) { plan.steps[1].results = {}; }},
      {"value y is made twice", [](Plan& plan) { plan.steps.push_back(plan.steps[1]); }},
      {"is used before it is made", [](Plan& plan) { std::swap(plan.steps[0], plan.steps[1]); }},
      {"is used before it is made", [](Plan& plan) { plan.steps[1].operands = {kY}; }},
      {"there is no value 4", [](Plan& plan) { plan.steps[1].operands = {kAdded}; }},
      {"there is no value -2", [](Plan& plan) { plan.steps[1].operands = {PlanValueId{-2}}; }},
      {"there is no value -1", [](Plan& plan) { plan.steps[1].results = {PlanValueId::none}; }},
      {"cannot be the result of 'copy'", [](Plan& plan) { plan.values[2].storage = Storage::held; }},
      {"cannot be the result of 'copy'", [](Plan& plan) { plan.values[2].storage = Storage::input; }},
      {"its result is view", [](Plan& plan) { plan.values[2].storage = Storage::view; }},
      {"its result is arena", [](Plan& plan) { plan.values[1].storage = Storage::arena; }},
      {"is a view of nothing", [](Plan& plan) { plan.steps[0].operands = {PlanValueId::none}; }},
      {"an operand of a step of 'reference' is missing",
       [](Plan& plan) {
         plan.values[2].storage = Storage::held;
         plan.steps[1].kernel = "reference", plan.steps[1].operands = {PlanValueId::none};
       }},
      {"there is no value 7", [](Plan& plan) { plan.outputs[0].value = PlanValueId{7}; }},
      {"leaves after the last step", [](Plan& plan) { plan.outputs[0].leaves_after = 2; }},
      {"two outputs are called 'y'", [](Plan& plan) { plan.outputs.push_back({"y", kX, {}}); }},
      {"value total is written twice", [](Plan& plan) { plan.writes.push_back({kTotal, kFirst}); }},
      {"which is neither state nor an input", [](Plan& plan) { plan.writes[0].target = kY; }},
      {"a write of f32 goes to total, which is i32",
       [](Plan& plan) {
         plan.values[3].dtype = Dtype::i32;
         plan.arrays[0].array = make_array(Dtype::i32, {1, 4});
       }},
      {"to state total, which is f32[1, 3]",
       [](Plan& plan) {
         plan.values[3].sizes = {1, 3};
         plan.arrays[0].array = make_array(Dtype::f32, {1, 3});
       }},
      {"does not follow from the sizes of the inputs",
       [](Plan& plan) { plan.values[2].sizes[0] = SizeExpression::parse("n - 3", plan.dimensions); }},
      {"does not follow from the sizes of the inputs",
       [](Plan& plan) { plan.values[2].sizes[0] = SizeExpression::parse("unknown", plan.dimensions); }},
  };
  return breaks;
}

}  // namespace

TEST_CASE("a plan of which each rule is broken once is refused by name") {
  run_plan(make_plan());
  for (const Break& broken : list_breaks()) {
    CAPTURE(broken.words);
    Plan plan = make_plan();
    broken.apply(plan);
    const Stopwatch watch;
    EXPECT_ERROR(invalid_input, run_plan(plan), broken.words);
    CHECK(watch.seconds() < 1);
  }
}

TEST_CASE("a plan runs at sizes that meet its requirements, before and after a file") {
  Plan plan = make_plan();
  plan.requirements = {{"n % 2 == 0", SizeExpression::parse("-(n % 2)", plan.dimensions)}};
  run_plan(plan);
  ModelFile file;
  put_plan(file, plan);
  const Plan read = read_plan(file);
  REQUIRE(read.requirements.size() == 1);
  CHECK(read.requirements[0].text == "n % 2 == 0");
  run_plan(read);
  Session session(std::make_shared<Plan>(read), {.threads = 1});
  const Array x = make_array(Dtype::f32, {3, 4});
  EXPECT_ERROR(invalid_input, session.run(std::vector<TensorView>{x.view()}), "n = 3");
}

TEST_CASE("sizes that only large inputs make too large ask for smaller inputs") {
  Plan plan = make_plan();
  plan.dimensions[0].maximum = INT64_MAX;
  plan.values[0].sizes = {SizeExpression::parse("n", plan.dimensions), 4};
  plan.values[2].sizes[0] = SizeExpression::parse("n**60", plan.dimensions);
  EXPECT_ERROR(over_budget, run_plan(plan), "give smaller inputs");
}

TEST_CASE("values that together pass 63 bits are refused, not added up") {
  Plan plan = make_plan();
  plan.writes.clear();
  constexpr int64_t kWide = int64_t{1} << 22;
  plan.values[1].sizes = {kWide, kWide};
  plan.steps[0].attributes = {};
  plan.steps[0].attributes.set("form", std::string("expand"));
  const PlanValueId one = plan.add_value(make_value("one", Storage::view, {1, 1}));
  PlanStep slice = plan.steps[0];
  slice.attributes.set("form", std::string("slice"));
  slice.attributes.set("dim", int64_t{1});
  slice.attributes.set("start", int64_t{0});
  slice.results = {one};
  plan.values[0].sizes = {1, 4};
  plan.steps[0].operands = {one};
  plan.values[2].sizes = {kWide, kWide};
  plan.steps.insert(plan.steps.begin(), slice);
  for (int i = 0; i < 1 << 16; ++i) {
    PlanStep copy = plan.steps[2];
    copy.results = {plan.add_value(make_value("v" + std::to_string(i), Storage::arena, {kWide, kWide}))};
    plan.steps.push_back(copy);
  }
  const Stopwatch watch;
  EXPECT_ERROR(over_budget, Binding(plan, {1}, 1), "more than 2^62 bytes");
  CHECK(watch.seconds() < 5);
}

// What the gate adds to opening a model: LISSOME_MODEL=model.lissome test_runtime -ns -tc='what the gate takes'
TEST_CASE("what the gate takes" * doctest::skip()) {
  const ModelFile file = load_model_file(std::getenv("LISSOME_MODEL"));
  const Plan plan = read_plan(file);
  std::vector<double> whole, gate;
  for (int i = 0; i < 51; ++i) {
    const Stopwatch reading;
    read_plan(file);
    whole.push_back(reading.seconds());
    const Stopwatch checking;
    check_plan(plan);
    gate.push_back(checking.seconds());
  }
  const Summary all = summarize(whole), part = summarize(gate);
  MESSAGE(plan.steps.size(), " steps: the gate takes ", format_duration(part.median), " (",
          format_duration(part.percentile_5), " to ", format_duration(part.percentile_95), ") of the ",
          format_duration(all.median), " that reading the plan takes");
  CHECK(part.median < 2e-3);
}

TEST_CASE("memory of many large buffers is planned in bounded time") {
  std::vector<PlannedBuffer> buffers(3000);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto first = static_cast<int>(i);
    buffers[i] = {64 * static_cast<int64_t>(1 + i * 7919 % 255), first, first + static_cast<int>(i % 37), 0};
  }
  const Stopwatch watch;
  const PlannedArena arena = plan_memory(buffers);
  CHECK(verify_memory_plan(buffers, arena.bytes).empty());
  CHECK(watch.seconds() < 30);
}
