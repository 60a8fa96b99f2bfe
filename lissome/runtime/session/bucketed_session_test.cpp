// Padding up to buckets on plans made by hand: softmax over the padded dimension takes notice of everything but -inf.
#include "lissome/runtime/session/bucketed_session.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "lissome/kernel.h"

using namespace lissome;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// y = softmax(x) over n for x [rows, n]; z = x [rows, n] as it came.
std::shared_ptr<Plan> make_plan(const char* second_size = "n") {
  auto plan = std::make_shared<Plan>();
  plan->dimensions = {{"rows", 1, 8}, {"n", 1, 64}};
  const auto sizes = [&](const char* last) {
    return std::vector<SizeExpression>{SizeExpression::parse("rows", plan->dimensions),
                                       SizeExpression::parse(last, plan->dimensions)};
  };
  const auto add = [&](const char* name, Storage storage, const char* last) {
    return plan->add_value({name, storage, PlanKind::tensor, Dtype::f32, true, sizes(last), Format::row_major, -1});
  };
  const PlanValueId x = add("x", Storage::input, second_size), y = add("y", Storage::arena, second_size);
  plan->inputs = {{"x", x}};
  plan->outputs = {{"y", y, {}}, {"z", x, {}}};
  PlanStep step;
  step.kernel = "softmax";
  step.operands = {x}, step.results = {y};
  plan->steps = {step};
  return plan;
}

Array make_input(int64_t rows, int64_t n) {
  Array x = make_array(Dtype::f32, {rows, n});
  for (int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  return x;
}

BucketedSession open(BucketOptions options, int64_t n = 5, std::shared_ptr<Plan> plan = make_plan()) {
  const Array x = make_input(3, n);
  return {Session(std::move(plan), {.threads = 1}), std::move(options), std::vector<TensorView>{x.view()}};
}

std::string refuse(BucketOptions options, ErrorKind kind, int64_t n = 5, std::shared_ptr<Plan> plan = make_plan()) {
  try {
    open(std::move(options), n, std::move(plan));
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.message();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("inputs are padded to the next bucket and outputs cut back") {
  BucketedSession bucketed = open({"n", {32, 8}, {{"x", -kInfinity}}});
  CHECK(bucketed.seen_difference() < 1e-6);
  Session plain(make_plan(), {.threads = 1});
  CHECK(open({"x.1", {8}, {{"x", -kInfinity}}}).seen_difference() < 1e-6);
  for (const int64_t n : {1, 5, 8, 9, 32, 33, 64, 7}) {
    const Array x = make_input(2, n);
    const std::vector<TensorView> inputs = {x.view()};
    const std::vector<Array> seen = bucketed.run(inputs), wanted = plain.run(inputs);
    for (size_t i = 0; i < 2; ++i) {
      REQUIRE(seen[i].sizes == Sizes{2, n});
      for (int64_t k = 0; k < 2 * n; ++k)
        CHECK(seen[i].data<float>()[k] == doctest::Approx(wanted[i].data<float>()[k]).epsilon(1e-6));
    }
  }
  const Array wrong = make_array(Dtype::f32, {2, 65}), flat = make_array(Dtype::f32, {9});
  for (const Array& array : {wrong, flat}) CHECK_THROWS_AS(bucketed.run(std::vector<TensorView>{array.view()}), Error);
  const Array x = make_input(8, 3);
  CHECK(bucketed.run(std::vector<TensorView>{x.view()})[0].sizes == Sizes{8, 3});
}

TEST_CASE("a model that takes notice of what is padded is refused with the figure") {
  const std::string refused = refuse({"n", {8}, {{"x", 0}}}, ErrorKind::unsupported);
  CHECK(has(refused, "padding n from 5 to 8 changes output 'y' by 0."));
  CHECK(has(refused, "at most 0.001"));
}

TEST_CASE("options that do not fit the plan are usage errors") {
  CHECK(has(refuse({"m", {8}, {}}, ErrorKind::usage), "it has rows, n"));
  CHECK(has(refuse({"x.2", {8}, {}}, ErrorKind::usage), "no dimension 'x.2'"));
  CHECK(has(refuse({"n", {}, {{"x", 0}}}, ErrorKind::usage), "no size"));
  CHECK(has(refuse({"n", {8, 65}, {{"x", 0}}}, ErrorKind::usage), "n is 1 to 64, not 65"));
  CHECK(has(refuse({"n", {8}, {}}, ErrorKind::usage), "what pads input 'x' is not given"));
  CHECK(has(refuse({"n", {8}, {{"x", 0}, {"w", 1}}}, ErrorKind::usage), "no input 'w'"));
  CHECK(has(refuse({"n", {8}, {{"x", -kInfinity}}}, ErrorKind::usage, 8), "proves nothing"));
}

TEST_CASE("sizes that are computed from the dimension, and state, are refused") {
  CHECK(has(refuse({"n", {8}, {{"x", 0}}}, ErrorKind::unsupported, 6, make_plan("2*n")), "computed from 'n'"));
  const auto plan = make_plan();
  plan->arrays = {{"kept", false, make_array(Dtype::f32, {1})}};
  const PlanValueId kept =
      plan->add_value({"kept", Storage::state, PlanKind::tensor, Dtype::f32, true, {1}, Format::row_major, 0});
  plan->writes = {{kept, kept}};
  CHECK(has(refuse({"n", {8}, {{"x", 0}}}, ErrorKind::unsupported, 5, plan), "keeps state"));
}
