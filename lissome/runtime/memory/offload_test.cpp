// Plans made by hand of which a value waits in a file, and files that fail.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <numeric>

#include "lissome/runtime/memory/unnamed_file.h"
#include "lissome/runtime/session/session.h"
#include "tests/expect_error.h"
#include "tests/file_limit.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

constexpr int64_t kWidth = 4096;

// Of one operand: its square, where the step computes.
PlanStep make_step(std::string kernel, PlanValueId operand, PlanValueId result) {
  PlanStep step;
  if (kernel == "elementwise")
    step.attributes.set("program", std::vector<std::string>{"load 0 0 0 0 0 0", "multiply 1 0 0 0 0 0"});
  step.kernel = std::move(kernel);
  step.operands = {operand}, step.results = {result};
  return step;
}

// y = x^8 of [n, 4096] and c = x^4; with `spill` b = x^4 waits in the file while c is made.
Plan make_plan(bool spill) {
  Plan plan;
  plan.dimensions = {{"n", 1, 512}};
  const std::vector<SizeExpression> sizes = {SizeExpression::parse("n", plan.dimensions), kWidth};
  const auto add_value = [&](std::string name, Storage storage) {
    return plan.add_value({std::move(name), storage, PlanKind::tensor, Dtype::f32, true, sizes, Format::row_major, -1});
  };
  const PlanValueId x = add_value("x", Storage::input), a = add_value("a", Storage::arena),
                    b = add_value("b", Storage::arena), c = add_value("c", Storage::arena),
                    y = add_value("y", Storage::arena);
  plan.inputs = {{"x", x}};
  plan.outputs = {{"y", y, {}}, {"c", c, {}}};
  plan.steps = {make_step("elementwise", x, a), make_step("elementwise", a, b)};
  PlanValueId again = b;
  if (spill) {
    again = add_value("b.restored", Storage::arena);
    const PlanValueId ticket = add_value("b.ticket", Storage::arena);
    plan.values.back().dtype = Dtype::i64, plan.values.back().sizes = {};
    plan.steps.push_back(make_step("offload", b, ticket));
    plan.steps.push_back(make_step("elementwise", a, c));
    plan.steps.push_back(make_step("reload", ticket, again));
  } else {
    plan.steps.push_back(make_step("elementwise", a, c));
  }
  plan.steps.push_back(make_step("elementwise", again, y));
  return plan;
}

Array make_input(int64_t rows) {
  Array x = make_array(Dtype::f32, {rows, kWidth});
  for (int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = 0.5F + static_cast<float>(i % 1013) / 1013;
  return x;
}

std::vector<Array> run(Session& session, const Array& x) {
  const TensorView view = x.view();
  return session.run({&view, 1});
}

bool same_bits(const Array& a, const Array& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.storage.get(), b.storage.get(), static_cast<size_t>(a.bytes())) == 0;
}

}  // namespace

TEST_CASE("a value that waits in a file comes back with its bits, for every shape") {
  const TemporaryFolder folder;
  Session plain(std::make_shared<Plan>(make_plan(false)), {.threads = 2});
  const auto plan = std::make_shared<Plan>(make_plan(true));
  Session spill(plan, {.threads = 2, .offload_folder = folder.file(".")});
  for (const int64_t rows : {300, 7, 300, 512}) {
    const Array x = make_input(rows);
    const std::vector<Array> wanted = run(plain, x), seen = run(spill, x);
    CHECK(same_bits(seen.at(0), wanted.at(0)));
    CHECK(same_bits(seen.at(1), wanted.at(1)));
  }
  CHECK(std::filesystem::is_empty(folder.file(".")));
  std::vector<std::string> kernels;
  std::vector<int64_t> bytes;
  const StepSink sink = [&](const StepTiming& timing) {
    kernels.emplace_back(timing.kernel);
    bytes.push_back(timing.bytes);
  };
  const Array x = make_input(300);
  const TensorView view = x.view();
  spill.run({&view, 1}, &sink);
  CHECK(kernels ==
        std::vector<std::string>{"elementwise", "elementwise", "offload", "elementwise", "reload", "elementwise"});
  CHECK(bytes.at(2) == 300 * kWidth * 4);
  CHECK(bytes.at(4) == bytes.at(2));
}

TEST_CASE("plans whose transfers do not fit together are refused") {
  const TemporaryFolder folder;
  const SessionOptions options{.threads = 1, .offload_folder = folder.file(".")};
  const Array x = make_input(2);
  EXPECT_ERROR(invalid_input, Session(std::make_shared<Plan>(make_plan(true)), {.threads = 1}), "no folder");
  EXPECT_ERROR(usage, Session(std::make_shared<Plan>(make_plan(true)), {.offload_folder = folder.file("none")}),
               "none");
  const auto refuse = [&](const auto& change, const char* words) {
    Plan plan = make_plan(true);
    change(plan);
    const auto open_and_run = [&] {
      Session session(std::make_shared<Plan>(std::move(plan)), options);
      return run(session, x);
    };
    EXPECT_ERROR(invalid_input, open_and_run(), words);
  };
  refuse([](Plan& plan) { plan.steps[4].operands = {PlanValueId{1}}; }, "must be i64");
  refuse([](Plan& plan) { plan.values[5].sizes = {2, kWidth / 2}; }, "what comes back is");
  refuse([](Plan& plan) { plan.values[5].dtype = Dtype::i32; }, "what comes back is");
  refuse([](Plan& plan) { plan.values[6].dtype = Dtype::f32; }, "must be i64");
}

TEST_CASE("a full disk is reported, at binding and at a write, and leaves the session usable") {
  const TemporaryFolder folder;
  Session plain(std::make_shared<Plan>(make_plan(false)), {.threads = 2});
  Session spill(std::make_shared<Plan>(make_plan(true)), {.threads = 2, .offload_folder = folder.file(".")});
  const Array small = make_input(3), large = make_input(500);
  const Array wanted = run(plain, large).at(0), wanted_small = run(plain, small).at(0);
  {
    const FileLimit limit(1 << 20);
    EXPECT_ERROR(io, run(spill, large), "cannot be offloaded to", "File too large");
    CHECK(same_bits(run(spill, small).at(0), wanted_small));
  }
  CHECK(same_bits(run(spill, large).at(0), wanted));
  {
    const FileLimit limit(1 << 20);
    EXPECT_ERROR(io, run(spill, large), "cannot be written to a file in", "File too large");
  }
  CHECK(same_bits(run(spill, large).at(0), wanted));
}

TEST_CASE("an unnamed file keeps what is written where it is written") {
  const TemporaryFolder folder;
  UnnamedFile file(folder.file("."));
  file.reserve(3 << 20);
  file.reserve(1 << 20);
  CHECK(file.bytes() == 3 << 20);
  std::vector<int> numbers(1 << 18), seen(1 << 18);
  std::iota(numbers.begin(), numbers.end(), 7);
  file.write(2 << 20, numbers.data(), 1 << 20);
  file.fetch({0, 3 << 20});
  file.read(2 << 20, seen.data(), 1 << 20);
  CHECK(seen == numbers);
  file.read(1 << 20, seen.data(), 1 << 20);
  CHECK(seen == std::vector<int>(1 << 18, 0));
  EXPECT_ERROR(internal, file.read(3 << 20, seen.data(), 1), "");
  CHECK(std::filesystem::is_empty(folder.file(".")));
}
