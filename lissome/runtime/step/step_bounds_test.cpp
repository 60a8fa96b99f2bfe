// What no schema says of the steps that move, normalize, attend and differentiate: products of sizes, loops over values
// without elements, numbers of the data that are used as places, results that would stay unwritten.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/session.h"
#include "lissome/runtime/step/step_test_cases.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;
using namespace lissome::step_cases;

namespace {

constexpr int64_t kMany = int64_t{1} << 20;

}  // namespace

TEST_CASE("sizes that multiply out of range are refused though another of them is 0") {
  const Sizes sizes = {int64_t{1} << 30, int64_t{1} << 30, 0};
  StepCase copy = make_case("copy", {}, {f32(sizes)}, {f32(sizes)});
  EXPECT_ERROR(invalid_input, run(copy.plan), "is larger than");
  const CaseValue keys = f32({0, 2, int64_t{1} << 57, 4}), queries = f32({0, 2, 5, 4});
  StepCase attention = make_case("attention_u8s8", {}, {queries, keys, keys}, {queries});
  CHECK(measure_seconds([&] { EXPECT_ERROR(invalid_input, run(attention.plan), "is larger than"); }) < kSoon);
}

TEST_CASE("values without elements cost nothing, however many rows they have") {
  const CaseValue x = f32({kMany, kMany, 0}), ids = i64({kMany, kMany, 0});
  const Entries dim = {{"dim", number(0)}};
  expect_quick(make_case("copy", {}, {x}, {x}));
  expect_quick(make_case("concat", {{"dim", number(2)}}, {x, x}, {x}));
  expect_quick(make_case("cumulate", {{"dim", number(2)}}, {x}, {x}));
  expect_quick(make_case("pad", {{"before", list({0, 0, 0})}, {"after", list({0, 0, 0})}}, {x}, {x}));
  expect_quick(make_case("reduce", {{"first", number(0)}, {"count", number(1)}}, {x}, {f32({kMany, 0})}));
  expect_quick(make_case("softmax", {}, {x}, {x}));
  expect_quick(make_case("find_largest", dim, {x}, {i64({kMany, 0})}));
  expect_quick(make_case("gather", {{"form", text("gather")}, {"dim", number(0)}}, {x, ids}, {x}));
  expect_quick(make_case("elementwise", {{"program", program({"load 0 0 0 0 0 0"})}}, {x}, {x}));
  const CaseValue image = f32({kMany, 1, kMany, 0}, kLast);
  expect_quick(make_case("interpolate", {}, {image}, {image}));
  expect_quick(make_case("group_norm", {{"groups", number(1)}}, {image}, {image}));
  const CaseValue heads = f32({kMany, kMany, 0, 4}), rows = f32({kMany, kMany, 0});
  expect_quick(make_case("attention", {}, {heads, heads, heads}, {heads, rows}));
  expect_quick(make_case("attention_u8s8", {}, {heads, heads, heads}, {heads}));
  expect_quick(
      make_case("attention_gradient", {}, {heads, heads, heads, kAbsent, heads, rows, heads}, {heads, heads, heads}));
}

TEST_CASE("a result without elements may have its zero anywhere") {
  const CaseValue x = f32({2, 0, 3});
  expect_quick(make_case("elementwise", {{"program", program({"load 0 0 0 0 0 0"})}}, {x}, {x}));
}

TEST_CASE("rows of no numbers take no memory, and are not attended") {
  const CaseValue q = f32({1, 1, 1, 0}), keys = f32({1, 1, int64_t{1} << 40, 0});
  expect_refusal(make_case("attention", {}, {q, keys, keys}, {q, f32({1, 1, 1})}), "an operand is empty");
}

TEST_CASE("scratch that would wrap around is refused") {
  const int64_t rows = int64_t{1} << 31;  // rows * rows * 4 bytes is 2^64
  const CaseValue x = bf16({1, 1, 2, 1}), logarithms = f32({1, 1, 2});
  StepCase broken = make_case("attention_gradient_bf16", {}, {x, x, x, kAbsent, x, logarithms, x}, {x, x, x});
  for (const size_t i : {0, 1, 2, 4, 6}) expand_operand(broken, i, {1, 1, rows, 1});
  broken.step().operands[5] = add_value(broken.plan, logarithms, Storage::constant);
  broken.value(broken.step().operands[5]).storage = Storage::input;  // its memory is never asked for
  broken.value(broken.step().operands[5]).sizes = {1, 1, rows};
  broken.plan.inputs = {{"logarithms", broken.step().operands[5]}};
  for (const PlanValueId id : broken.step().results) broken.value(id).sizes = {1, 1, rows, 1};
  EXPECT_ERROR(invalid_input, Binding(broken.plan, {}, 1), "sizes multiply to more than");
}

TEST_CASE("results that a step would leave unwritten are refused") {
  StepCase norm = find_case("layer_norm statistics");
  norm.step().attributes.set("statistics", int64_t{0});
  expect_refusal(norm, "3 results with statistics = 0");
  StepCase sum = find_case("layer_norm");
  sum.step().attributes.set("statistics", int64_t{1});
  expect_refusal(sum, "2 results with statistics = 1");
}

TEST_CASE("a ticket says nothing of what lay in its place before") {
  StepCase spill = make_spill(0);
  spill.plan.outputs.push_back({"ticket", spill.step().results[0], {}});
  const TemporaryFolder folder;
  Session session(std::make_shared<Plan>(spill.plan), {.threads = 1, .offload_folder = folder.path()});
  Array y = make_array(Dtype::f32, {2, 3, 4}), ticket = make_array(Dtype::i64, {});
  ticket.data<int64_t>()[0] = 7;
  session.run_into({}, std::vector<TensorView>{y.view(), ticket.view()});
  CHECK(ticket.data<int64_t>()[0] == 0);
}

TEST_CASE("what comes back from a file must have been sent there") {
  StepCase broken = make_spill(1);
  broken.step().operands[0] = add_value(broken.plan, i64({}), Storage::constant);
  expect_refusal(broken, "its operand is not what a step");
}

TEST_CASE("numbers of the data that are no index, label or bool stay inside of memory") {
  for (const char* name : {"gather_rows", "gather_rows packed", "gather_rows packed narrow", "gather", "gather along",
                           "nll_loss", "embedding_gradient"}) {
    for (const int64_t index : {INT64_MIN, int64_t{-1000}, int64_t{1000}, int64_t{1} << 40, INT64_MAX}) {
      StepCase broken = find_case(name);
      const PlanValueId id = broken.step().operands[1];
      Array indices = make_array(Dtype::i64, sizes_of(broken, id));
      for (int64_t i = 0; i < indices.elements(); ++i) indices.data<int64_t>()[i] = index;
      broken.plan.arrays[static_cast<size_t>(broken.value(id).array)].array = indices;
      EXPECT_ERROR(invalid_input, run(broken.plan), "an index in the data is out of range");
    }
  }
  StepCase gradient = find_case("cross_entropy_gradient");
  Array labels = make_array(Dtype::i64, {5});
  labels.data<int64_t>()[2] = int64_t{1} << 40;
  gradient.plan.arrays[1].array = labels;
  expect_quick(gradient);
  // Any byte: places are only compared.
  for (const char* name : {"channel_sums pooled", "channel_affine pooled"}) {
    StepCase pooled = find_case(name);
    Array& places = pooled.plan.arrays.back().array;
    REQUIRE(places.dtype == Dtype::u8);
    Array filled = make_array(Dtype::u8, places.sizes);
    std::memset(filled.data<uint8_t>(), 255, static_cast<size_t>(filled.bytes()));
    places = filled;
    expect_quick(pooled);
  }
  StepCase bools = find_case("elementwise integers");
  Array bytes = make_array(Dtype::boolean, {3});
  std::memset(bytes.storage.get(), 7, 3);
  bools.plan.arrays[0].array = bytes;
  CHECK(run(bools.plan).at(0).data<int64_t>()[1] == 1);
}

TEST_CASE("views stay inside of what they view") {
  const auto break_view = [](const char* name, const char* attribute, int64_t value, const char* words) {
    StepCase broken = find_case(name);
    broken.step().attributes.set(attribute, value);
    expect_refusal(broken, words);
  };
  break_view("view slice", "start", 2, "the part lies outside");
  break_view("view slice", "start", INT64_MAX, "the part lies outside");
  break_view("view slice", "step", INT64_MAX, "the part lies outside");
  break_view("view slice", "dim", 3, "there is no dimension 3");
  break_view("view slice", "measured", 0, "measured of operand 1");
  break_view("view select", "index", 3, "the part lies outside");
  break_view("view select", "index", -4, "the part lies outside");
  break_view("view select", "index", INT64_MIN, "the part lies outside");
  StepCase twice = find_case("view permute");
  twice.step().attributes.set("dims", std::vector<int64_t>{0, 0, 1});
  expect_refusal(twice, "permute names dimension 0");
}

TEST_CASE("padding cuts no more than there is, and places of an interpolation are counted in range") {
  const int64_t far = int64_t{1} << 45;
  StepCase pad = find_case("pad");
  pad.step().attributes.set("before", std::vector<int64_t>{-far, 1});
  pad.step().attributes.set("after", std::vector<int64_t>{far + 1, -1});
  expect_refusal(pad, "more is cut than dimension 0 has");
  StepCase image = make_case("interpolate", {{"scale_height", 1048576.0}}, {f32({1, 1, 2, 1}, kLast)}, {});
  image.step().results = {add_result(image.plan, f32({1, 1, int64_t{1} << 43, 1}, kLast))};
  EXPECT_ERROR(invalid_input, Binding(image.plan, {}, 1), "scale_height is");
}

TEST_CASE("programs of element-wise steps are read to their end, and registers are filled before they are read") {
  const auto refuse = [](const std::vector<std::string>& lines, const std::string& words, bool integers = false) {
    StepCase broken = find_case(integers ? "elementwise integers" : "elementwise");
    broken.step().attributes.set("program", lines);
    expect_refusal(broken, words);
  };
  refuse({}, "0 instructions");
  refuse(std::vector<std::string>(kElementInstructions + 1, "load 0 0 0 0 0 0"), "25 instructions");
  for (const char* line :
       {"", "load", "fly 0 0 0 0 0 0", "load 10 0 0 0 0 0", "load -1 0 0 0 0 0", "load 0 2 0 0 0 0",
        "load 0 0 10 0 0 0", "load 0 0 0 10 0 0", "load 0 0 0 0 x 0", "load 0 0 0 0 0", "load 0 0 0 0 0 0 0",
        "load 99999999999 0 0 0 0 0", "load 0 0 0 0 0 0x", "load 0.5 0 0 0 0 0"})
    refuse({line}, "is broken");
  refuse({"load 0 0 0 0 0 0", "activate 1 0 12 0 0 0"}, "is broken");
  refuse({"add 0 1 2 0 0 0"}, "reads an empty register");
  refuse({"load 0 0 0 0 0 0", "select 1 0 0 3 0 0"}, "reads an empty register");
  refuse({"load 0 0 0 0 0 0", "sine 1 0 0 0 0 0"}, "is not for integers", true);
  refuse({"constant 0 0 0 0 1e300 0"}, "holds a number out of range", true);
  refuse({"position 0 0 0 0 0 nan"}, "holds a number out of range", true);
}
