// Plans made by hand, run without libtorch in the process.
#include "lissome/runtime/session/session.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "lissome/kernel.h"
#include "lissome/measure.h"
#include "lissome/runtime/memory/early_outputs.h"
#include "lissome/runtime/memory/memory_timeline.h"
#include "lissome/runtime/plan/plan_io.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/stream_pool.h"
#include "tests/count_allocations.h"

using namespace lissome;

namespace {

PlanValue make_value(std::string name, Storage storage, std::vector<SizeExpression> sizes, int array = -1) {
  return {std::move(name), storage, PlanKind::tensor, Dtype::f32, true, std::move(sizes), Format::row_major, array};
}

constexpr PlanValueId kX{0}, kFirst{1}, kSecond{2}, kH{3}, kY{4};  // of make_plan()

// y = relu(x w^T) w2^T for x [batch, 4]; the first weight doubles, the second adds up.
Plan make_plan() {
  Plan plan;
  plan.dimensions = {{"batch", 1, 8}};
  Array first = make_array(Dtype::f32, {packed_linear_f32_size(4, 4)});
  Array second = make_array(Dtype::f32, {packed_linear_f32_size(1, 4)});
  for (int64_t k = 0; k < 4; ++k) {
    first.data<float>()[k * kLinearPanel + k] = 2;
    second.data<float>()[k * kLinearPanel] = 1;
  }
  plan.arrays = {{"first", true, first}, {"second", true, second}};
  const SizeExpression batch = SizeExpression::parse("batch", plan.dimensions);
  plan.values = {make_value("x", Storage::input, {batch, 4}), make_value("first", Storage::constant, {256}, 0),
                 make_value("second", Storage::constant, {256}, 1), make_value("h", Storage::arena, {batch, 4}),
                 make_value("y", Storage::arena, {batch, 1})};
  plan.inputs = {{"x", kX}};
  plan.outputs = {{"y", kY, {}}};
  PlanStep step;
  step.kernel = "linear_f32";
  step.attributes.set("outputs", int64_t{4});
  step.attributes.set("activation", std::string("relu"));
  step.operands = {kX, kFirst, PlanValueId::none, PlanValueId::none}, step.results = {kH};
  plan.steps.push_back(step);
  step.attributes = {};
  step.attributes.set("outputs", int64_t{1});
  step.operands = {kH, kSecond, PlanValueId::none, PlanValueId::none}, step.results = {kY};
  plan.steps.push_back(step);
  return plan;
}

Array make_input(int64_t batch, float value) {
  Array x = make_array(Dtype::f32, {batch, 4});
  for (int64_t i = 0; i < 4 * batch; ++i) x.data<float>()[i] = value;
  return x;
}

ErrorKind kind_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::internal;
}

}  // namespace

TEST_CASE("the values in the arena are reported step by step") {
  const Plan plan = make_plan();
  const MemoryTimeline timeline = trace_arena(plan, std::vector<Sizes>{{3, 4}}, 1);
  CHECK(timeline.values == std::vector<int64_t>{3 * 4 * 4, 3 * 4 * 4});
  REQUIRE(timeline.at_peak.size() == 1);
  CHECK(timeline.at_peak[0].bytes == 3 * 4 * 4);
  CHECK(timeline.at_peak[0].step == 0);
  CHECK(timeline.reserved >= timeline.total(timeline.peak_step));
}

TEST_CASE("a plan made by hand runs for several sizes, and again after its text form") {
  ModelFile file;
  put_plan(file, make_plan());
  for (const Plan& plan : {make_plan(), read_plan(file)}) {
    Session session(std::make_shared<Plan>(plan));
    for (const int64_t batch : {1, 3, 8, 1}) {
      const Array x = make_input(batch, 1.5f);
      const auto y = session.run(std::vector<TensorView>{x.view()});
      REQUIRE(y.size() == 1);
      CHECK(y[0].sizes == Sizes{batch, 1});
      for (int64_t i = 0; i < batch; ++i) CHECK(y[0].data<float>()[i] == 12);
    }
  }
}

TEST_CASE("what a run takes is counted, and a run that does not fit under a limit leaves the session as it was") {
  MemoryCounter& counter = allocator_memory();
  const int64_t before = counter.live();
  {
    Session session(std::make_shared<Plan>(make_plan()));
    const Array x = make_input(3, 1.5f);
    const auto run = [&] { return session.run(std::vector<TensorView>{x.view()}).at(0).data<float>()[2]; };
    counter.set_limit(before);
    CHECK(kind_of(run) == ErrorKind::over_budget);
    CHECK(kind_of(run) == ErrorKind::over_budget);
    CHECK(counter.live() == before);
    counter.set_limit(MemoryCounter::kUnlimited);
    CHECK(run() == 12);
    CHECK(counter.live() - before >= session.memory().arena);
    const int64_t idle = counter.live();
    counter.set_limit(idle);
    CHECK(kind_of(run) == ErrorKind::over_budget);  // its output
    counter.set_limit(MemoryCounter::kUnlimited);
    CHECK(run() == 12);
    CHECK(counter.live() == idle);
  }
  CHECK(counter.live() == before);
}

TEST_CASE("infinities and NaN stay in the text form of a plan") {
  const double infinity = std::numeric_limits<double>::infinity();
  Plan plan = make_plan();
  plan.outputs.push_back({"most", PlanValueId::none, infinity});
  plan.outputs.push_back({"undefined", PlanValueId::none, std::nan("")});
  plan.outputs.push_back({"one", PlanValueId::none, 1.0});
  plan.steps[0].attributes.set("alpha", -infinity);
  ModelFile file;
  put_plan(file, plan);
  const Plan read = read_plan(file);
  CHECK(std::get<double>(read.outputs[1].literal) == infinity);
  CHECK(std::isnan(std::get<double>(read.outputs[2].literal)));
  CHECK(std::get<double>(read.outputs[3].literal) == 1.0);
  CHECK(read.steps[0].attributes.number("alpha", 0) == -infinity);
  const size_t place = file.plan.find("\"-inf\"");
  REQUIRE(place != std::string::npos);
  file.plan.replace(place, 6, "\"much\"");
  CHECK_THROWS_AS(read_plan(file), Error);
}

TEST_CASE("what is joined is made in its place where it lies in one run and nobody reads it later") {
  // [batch, 64 + 64] of two linears, then [batch, 1].
  Plan plan;
  plan.dimensions = {{"batch", 1, 8}};
  const SizeExpression batch = SizeExpression::parse("batch", plan.dimensions);
  Array wide = make_array(Dtype::f32, {packed_linear_f32_size(64, 4)});
  Array narrow = make_array(Dtype::f32, {packed_linear_f32_size(1, 128)});
  for (int64_t k = 0; k < 4 * kLinearPanel; ++k) wide.data<float>()[k] = static_cast<float>(k % 7);
  for (int64_t k = 0; k < 128; ++k) narrow.data<float>()[k * kLinearPanel] = static_cast<float>(k % 5);
  plan.arrays = {{"wide", true, wide}, {"narrow", true, narrow}};
  const PlanValueId x = plan.add_value(make_value("x", Storage::input, {batch, 4}));
  const PlanValueId first = plan.add_value(make_value("wide", Storage::constant, {wide.elements()}, 0));
  const PlanValueId second = plan.add_value(make_value("narrow", Storage::constant, {narrow.elements()}, 1));
  const PlanValueId a = plan.add_value(make_value("a", Storage::arena, {batch, 64}));
  const PlanValueId b = plan.add_value(make_value("b", Storage::arena, {batch, 64}));
  const PlanValueId both = plan.add_value(make_value("both", Storage::arena, {batch, 128}));
  const PlanValueId y = plan.add_value(make_value("y", Storage::arena, {batch, 1}));
  plan.inputs = {{"x", x}};
  plan.outputs = {{"y", y, {}}};
  const auto add_linear = [&](PlanValueId from, PlanValueId weight, PlanValueId to, int64_t outputs) {
    PlanStep& step = plan.steps.emplace_back();
    step.kernel = "linear_f32";
    step.attributes.set("outputs", outputs);
    if (to == b) step.attributes.set("activation", std::string("sigmoid"));
    step.operands = {from, weight, PlanValueId::none, PlanValueId::none}, step.results = {to};
  };
  add_linear(x, first, a, 64), add_linear(x, first, b, 64);
  PlanStep& concat = plan.steps.emplace_back();
  concat.kernel = "concat";
  concat.attributes.set("dim", int64_t{1});
  concat.operands = {a, b}, concat.results = {both};
  add_linear(both, second, y, 1);
  const auto check = [&](const Plan& tried, int64_t rows, bool in_place) {
    Binding binding(tried, {rows}, 1);
    alignas(64) std::byte memory[1 << 13];
    binding.place_arena(memory);
    const std::byte* const whole = binding.arena_address(block_of(both));
    CHECK((binding.arena_address(block_of(a)) == whole) == in_place);
    CHECK((binding.arena_address(block_of(b)) == whole + 256) == in_place);
    CHECK(binding.arena_bytes() == (in_place ? 512 : 1024 * rows));
    CHECK(verify_memory_plan(binding.buffers(), binding.arena_bytes()).empty());
    Session session(std::make_shared<const Plan>(tried));
    const Array input = make_input(rows, 0.25f);
    const auto outputs = session.run(std::vector<TensorView>{input.view()});
    double wanted = 0;
    for (int64_t n = 0; n < 64; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < 4; ++k) sum += 0.25 * static_cast<double>((k * kLinearPanel + n) % 7);
      wanted += sum * static_cast<double>(n % 5) + static_cast<double>((64 + n) % 5) / (1 + std::exp(-sum));
    }
    for (int64_t i = 0; i < rows; ++i) CHECK(outputs[0].data<float>()[i] == doctest::Approx(wanted));
  };
  check(plan, 1, true);
  check(plan, 3, false);  // rows of both lie between each other
  Plan read_later = plan;
  read_later.outputs.push_back({"a", a, {}});
  const Binding binding(read_later, {1}, 1);
  CHECK_FALSE(binding.in_arena(block_of(a)));  // in the caller's memory
}

TEST_CASE("where no size varies, memory is there before the first run") {
  Plan plan = make_plan();
  CHECK(Session(std::make_shared<const Plan>(plan)).memory().arena == 0);
  for (PlanValue& value : plan.values) {
    if (value.storage == Storage::constant) continue;
    value.sizes[0] = SizeExpression::parse("3", {});
  }
  plan.dimensions.clear();
  Session session(std::make_shared<const Plan>(plan));
  const int64_t arena = session.memory().arena;
  CHECK(arena > 0);
  const Array x = make_input(3, 1);
  const TensorView view = x.view();
  CHECK(session.run({&view, 1}).at(0).data<float>()[2] == 8);
  CHECK(session.memory().arena == arena);
}

TEST_CASE("inputs that do not fit are refused by name and the session goes on") {
  Session session(std::make_shared<Plan>(make_plan()));
  const auto run = [&](const Array& x) { session.run(std::vector<TensorView>{x.view()}); };
  CHECK(kind_of([&] { run(make_array(Dtype::f64, {1, 4})); }) == ErrorKind::invalid_input);
  CHECK(kind_of([&] { run(make_array(Dtype::f32, {1, 5})); }) == ErrorKind::invalid_input);
  CHECK(kind_of([&] { run(make_array(Dtype::f32, {9, 4})); }) == ErrorKind::invalid_input);
  CHECK(kind_of([&] { run(make_array(Dtype::f32, {4})); }) == ErrorKind::invalid_input);
  CHECK(kind_of([&] { session.run(std::vector<TensorView>{}); }) == ErrorKind::invalid_input);
  const std::vector<NamedArray> misnamed = {{"z", make_input(1, 1)}};
  CHECK(kind_of([&] { session.run(misnamed); }) == ErrorKind::invalid_input);
  TensorView strided = make_input(2, 1).view();
  strided.strides = {1, 2};
  CHECK(kind_of([&] { session.run(std::vector<TensorView>{strided}); }) == ErrorKind::invalid_input);
  const std::vector<NamedArray> named = {{"x", make_input(2, 1)}};
  CHECK(session.run(named)[0].array.data<float>()[1] == 8);
}

TEST_CASE("a shape that needs more memory than there is is refused before it is taken, and the session goes on") {
  Plan plan = make_plan();
  plan.dimensions[0].maximum = INT64_MAX;
  constexpr int64_t kWide = 1 << 20;  // of the hidden layer: 4 MiB a row
  plan.arrays[0].array = make_array(Dtype::f32, {packed_linear_f32_size(kWide, 4)});
  plan.arrays[1].array = make_array(Dtype::f32, {packed_linear_f32_size(1, kWide)});
  for (const PlanValueId weight : {kFirst, kSecond}) {
    PlanValue& value = plan.value(weight);
    value.sizes = {plan.arrays[static_cast<size_t>(value.array)].array.sizes[0]};
  }
  plan.values[3].sizes[1] = kWide;
  plan.steps[0].attributes.set("outputs", kWide);
  Session session(std::make_shared<Plan>(plan));
  const int64_t rows = total_memory_bytes() / (4 * kWide) + 1;
  const auto run = [&](int64_t batch) {
    const Array x = make_input(batch, 1);
    return session.run(std::vector<TensorView>{x.view()})[0].sizes;
  };
  const int64_t before = read_resident_memory().now;
  CHECK(kind_of([&] { run(rows); }) == ErrorKind::over_budget);
  CHECK(read_resident_memory().now - before < int64_t{64} << 20);
  CHECK(run(2) == Sizes{2, 1});
}

TEST_CASE("results go into the caller's memory") {
  Session session(std::make_shared<Plan>(make_plan()));
  const Array x = make_input(2, 1), y = make_array(Dtype::f32, {2, 1}), wrong = make_array(Dtype::f32, {3, 1});
  session.run_into(std::vector<TensorView>{x.view()}, std::vector<TensorView>{y.view()});
  CHECK(y.data<float>()[0] == 8);
  CHECK(kind_of([&] { session.run_into(std::vector<TensorView>{x.view()}, std::vector<TensorView>{wrong.view()}); }) ==
        ErrorKind::invalid_input);
}

// Everything that can leave a session without libtorch: made in place, twice, a view, an input, a literal, none; and
// state that takes over what it gave before.
Plan make_plan_of_outputs() {
  Plan plan = make_plan();
  const SizeExpression batch = SizeExpression::parse("batch", plan.dimensions);
  const PlanValueId turned = plan.add_value(make_value("turned", Storage::view, {4, batch}));
  plan.arrays.push_back({"state", false, make_array(Dtype::f32, {1, 4})});
  const PlanValueId state = plan.add_value(make_value("state", Storage::state, {1, 4}, 2));
  const PlanValueId sum = plan.add_value(make_value("sum", Storage::arena, {batch, 4}));
  PlanStep turn;
  turn.kernel = "view";
  turn.attributes.set("form", std::string("permute"));
  turn.attributes.set("dims", std::vector<int64_t>{1, 0});
  turn.operands = {kH}, turn.results = {turned};
  PlanStep add;
  add.kernel = "elementwise";
  add.attributes.set("program", std::vector<std::string>{"load 0 0 0 0 0 0", "load 1 1 0 0 0 0", "add 2 0 1 0 0 0"});
  add.operands = {kX, state}, add.results = {sum};
  plan.steps.push_back(turn);
  plan.steps.push_back(add);
  plan.outputs = {{"y", kY, {}},
                  {"again", kY, {}},
                  {"turned", turned, {}},
                  {"x", kX, {}},
                  {"state", state, {}},
                  {"number", PlanValueId::none, int64_t{7}},
                  {"none", PlanValueId::none, {}}};
  plan.writes = {{state, sum}};
  return plan;
}

TEST_CASE("a warm run into the caller's memory allocates nothing, whatever leaves it") {
  for (const int threads : {1, 2}) {
    Session session(std::make_shared<Plan>(make_plan_of_outputs()), {.threads = threads});
    const Array x = make_input(1, 3);
    const std::vector<TensorView> inputs = {x.view()};
    std::vector<Array> kept = session.run(inputs);
    std::vector<TensorView> places;
    for (Array& output : kept) {
      if (output.storage) output = copy_array(output.view());  // no longer the session's own
      places.push_back(output.view());
    }
    session.run_into(inputs, places);
    const int64_t before = count_allocations();
    session.run_into(inputs, places);
    CHECK(count_allocations() == before);
    CHECK(kept[0].data<float>()[0] == 24);
    CHECK(kept[1].data<float>()[0] == 24);
    CHECK(kept[2].data<float>()[3] == 6);
    CHECK(kept[3].data<float>()[2] == 3);
    CHECK(kept[4].data<float>()[1] == 6);  // of two runs before
    CHECK(*kept[5].data<int64_t>() == 7);
    CHECK(session.memory().state == 32);
  }
}

// h = relu(x w^T), s = x + h, t = relu(s w^T), y = t w2^T; h and y leave.
Plan make_plan_of_early_outputs() {
  Plan plan = make_plan();
  const SizeExpression batch = SizeExpression::parse("batch", plan.dimensions);
  const PlanValueId s = plan.add_value(make_value("s", Storage::arena, {batch, 4}));
  const PlanValueId t = plan.add_value(make_value("t", Storage::arena, {batch, 4}));
  PlanStep add, linear = plan.steps[0];
  add.kernel = "elementwise";
  add.attributes.set("program", std::vector<std::string>{"load 0 0 0 0 0 0", "load 1 1 0 0 0 0", "add 2 0 1 0 0 0"});
  add.operands = {kH, kX}, add.results = {s};
  linear.operands = {s, kFirst, PlanValueId::none, PlanValueId::none}, linear.results = {t};
  plan.steps[1].operands[0] = t;
  plan.steps.insert(plan.steps.begin() + 1, {add, linear});
  plan.outputs = {{"h", kH, {}}, {"y", kY, {}}};
  return plan;
}

TEST_CASE("an output that leaves early is complete, its input is read no more, and its memory is used again") {
  Plan plan = make_plan_of_early_outputs();
  let_leave_early(plan, std::vector<EarlyOutput>{{0, {}}});
  CHECK(plan.outputs[0].leaves_after == 0);
  let_leave_early(plan, std::vector<EarlyOutput>{{0, {0}}});
  CHECK(plan.outputs[0].leaves_after == 1);
  for (const int threads : {1, 2}) {
    Session session(std::make_shared<Plan>(plan), {.threads = threads});
    Array x = make_input(1, 1.5f);
    std::vector<size_t> taken;
    const OutputTaker taker = [&](size_t output, const TensorView& view) {
      taken.push_back(output);
      CHECK(view.sizes == Sizes{1, 4});
      for (int i = 0; i < 4; ++i) CHECK(static_cast<const float*>(view.data)[i] == 3);
      for (int i = 0; i < 4; ++i) x.data<float>()[i] = 0;
    };
    const std::vector<TensorView> inputs = {x.view()};
    const std::vector<Array> outputs = session.run(inputs, nullptr, &taker);
    CHECK(taken == std::vector<size_t>{0});
    CHECK(outputs[0].storage == nullptr);
    CHECK(outputs[1].data<float>()[0] == 4 * 2 * 4.5f);
    CHECK(x.data<float>()[0] == 0);
    CHECK(session.memory().arena == 2 * 64);  // of three values
    const std::vector<TensorView> places = {TensorView{}, outputs[1].view()};
    session.run_into(inputs, places);  // nobody takes it
    CHECK(outputs[1].data<float>()[0] == 0);
    CHECK(taken.size() == 1);
  }
}

TEST_CASE("an output may not leave before it is made") {
  Plan plan = make_plan_of_early_outputs();
  plan.outputs[1].leaves_after = 2;
  CHECK(kind_of([&] { check_plan(plan); }) == ErrorKind::invalid_input);
  plan.outputs[1].leaves_after = 4;
  CHECK(kind_of([&] { check_plan(plan); }) == ErrorKind::invalid_input);
  plan.outputs[1].leaves_after = 3;
  check_plan(plan);
}

TEST_CASE("a run is stopped between its steps, and the session goes on") {
  for (const int threads : {1, 2}) {
    Session session(std::make_shared<Plan>(make_plan()), {.threads = threads});
    const Array x = make_input(3, 1.5f);
    const auto run = [&] { return session.run(std::vector<TensorView>{x.view()}).at(0).data<float>()[2]; };
    int polls = 0;
    bool stop = false;
    session.stop_runs([&] { return ++polls > 0 && stop; });
    CHECK(run() == 12);
    CHECK(polls >= 1);
    stop = true;
    CHECK_THROWS_AS(run(), RunInterrupted);
    stop = false;
    CHECK(run() == 12);
    session.stop_runs({});
    stop = true;
    CHECK(run() == 12);
  }
}

TEST_CASE("steps are timed when asked") {
  Session session(std::make_shared<Plan>(make_plan()));
  const Array x = make_input(2, 1);
  std::vector<std::string> kernels;
  const StepSink sink = [&](const StepTiming& timing) {
    CHECK(timing.nanoseconds >= 0);
    kernels.emplace_back(timing.kernel);
  };
  session.run(std::vector<TensorView>{x.view()}, &sink);
  CHECK(kernels == std::vector<std::string>{"linear_f32", "linear_f32"});
}

TEST_CASE("a session is shared by threads, a plan by sessions") {
  const auto plan = std::make_shared<Plan>(make_plan());
  Session shared(plan);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Session own(plan);
      for (int i = 0; i < 200; ++i) {
        const Array x = make_input(1 + (i + t) % 8, static_cast<float>(t));
        for (Session* session : {&shared, &own}) {
          wrong += session->run(std::vector<TensorView>{x.view()})[0].data<float>()[0] != 8.0f * static_cast<float>(t);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a plan that does not hold together is refused") {
  const auto refuse = [](const std::function<void(Plan&)>& change) {
    Plan plan = make_plan();
    change(plan);
    return kind_of([&] {
      Session session(std::make_shared<Plan>(plan));
      const Array x = make_input(1, 1);
      session.run(std::vector<TensorView>{x.view()});
    });
  };
  CHECK(refuse([](Plan& plan) { plan.steps[0].operands[0] = PlanValueId{77}; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.steps[0].operands[0] = kY; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.steps[0].operands[1] = PlanValueId::none; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.steps[0].attributes.set("outputs", int64_t{5000}); }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.steps[0].kernel = "nothing"; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.values[3].sizes[1] = 3; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.values[1].sizes[0] = 1 << 20; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.outputs[0].value = PlanValueId{9}; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.values[3].storage = Storage::view; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.values[0].kind = PlanKind::integer; }) == ErrorKind::invalid_input);
}

TEST_CASE("numbers in a plan that would overflow are refused") {
  const auto refuse = [](const std::function<void(Plan&)>& change) {
    Plan plan = make_plan_of_outputs();
    change(plan);
    return kind_of([&] {
      Session session(std::make_shared<Plan>(plan));
      const Array x = make_input(1, 1);
      session.run(std::vector<TensorView>{x.view()});
    });
  };
  const auto view = [&](const std::string& form, int64_t start, int64_t step) {
    return refuse([&](Plan& plan) {
      plan.values[5].sizes = plan.values[3].sizes;
      Attributes& attributes = plan.steps[2].attributes;
      attributes.set("form", form);
      attributes.set("dim", int64_t{0});
      attributes.set("start", start);
      attributes.set("step", step);
    });
  };
  CHECK(view("slice", 1, 1) == ErrorKind::invalid_input);
  CHECK(view("slice", INT64_MAX, 1) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.steps[2].operands[0] = PlanValueId::none; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.values[3].sizes = {int64_t{1} << 40, int64_t{1} << 40}; }) ==
        ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.values[5].sizes = {0, int64_t{1} << 62, 4}; }) == ErrorKind::invalid_input);
  CHECK(refuse([](Plan& plan) { plan.steps[0].attributes.set("outputs", INT64_MAX); }) == ErrorKind::invalid_input);
}

TEST_CASE("nodes that need libtorch are named where there is none") {
  Plan plan = make_plan();
  PlanStep step;
  step.kernel = "reference";
  step.origins = {{"7", "aten::fancy", "model.py:3", "", "", ""}};
  plan.steps.push_back(step);
  try {
    Session session(std::make_shared<Plan>(plan));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::unsupported);
    CHECK(error.message().find("aten::fancy") != std::string::npos);
    CHECK(error.message().find("model.py:3") != std::string::npos);
  }
}

TEST_CASE("a pool of streams answers many callers at once, and fails one call alone") {
  const auto plan = std::make_shared<Plan>(make_plan());
  for (const int streams : {1, 2, 3}) {
    StreamPool pool(plan, streams, {.threads = 4});
    CHECK(pool.streams() == streams);
    CHECK(pool.threads_each() == 4 / streams);
    std::atomic<int> wrong{0}, refused{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 5; ++t) {
      callers.emplace_back([&, t] {
        for (int i = 0; i < 100; ++i) {
          const Array x = make_input(1 + (i + t) % 10, static_cast<float>(t));  // at most 8 are admitted
          try {
            wrong += pool.run(std::vector<TensorView>{x.view()})[0].data<float>()[0] != 8.0f * static_cast<float>(t);
          } catch (const Error&) {
            ++refused;
          }
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK(wrong == 0);
    CHECK(refused == 100);
  }
  CHECK(kind_of([&] { StreamPool pool(plan, 0); }) == ErrorKind::usage);
  CHECK(kind_of([&] { StreamPool pool(plan, StreamPool::kMostStreams + 1); }) == ErrorKind::usage);
}

TEST_CASE("numbers of streams are measured in turns") {
  CHECK(list_stream_counts(1) == std::vector<int>{1});
  CHECK(list_stream_counts(6) == std::vector<int>{1, 2, 4, 6});
  const Array x = make_input(2, 1);
  const std::vector<TensorView> inputs = {x.view()};
  std::vector<StreamRate> rates =
      measure_streams(std::make_shared<Plan>(make_plan()), inputs, {1, 2}, {.threads = 2}, 0.5);
  REQUIRE(rates.size() == 2);
  for (const StreamRate& rate : rates) {
    CHECK(rate.calls_per_second > 1000);
    CHECK(rate.interval.low <= rate.calls_per_second);
    CHECK(rate.interval.high >= rate.calls_per_second);
  }
  CHECK(rates[0].speed.median == 1);
  CHECK(rates[1].threads_each == 1);
  rates[1].speed.interval = {0.9, 1.2};
  CHECK(choose_streams(rates) == 1);
  rates[1].speed.interval = {1.1, 1.2};
  CHECK(choose_streams(rates) == 2);
}
