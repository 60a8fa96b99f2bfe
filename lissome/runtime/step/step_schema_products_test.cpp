// Every rule of the steps of products, convolutions, pools, bytes and recurrent layers broken once. From each step of a
// table, by its schema, come twins that differ in one rule and must be refused by name. What no schema says, how sizes
// fit each other, has cases of its own below.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lissome/runtime/session/session.h"
#include "lissome/runtime/step/step_binder.h"
#include "lissome/runtime/step/step_product_cases.h"
#include "lissome/runtime/step/step_schema.h"

using namespace lissome;

namespace {

using Ints = std::vector<int64_t>;

void check_refused(const StepCase& broken, const std::string& rule, const std::string& how) {
  const std::string message = refuse(broken);
  CHECK_MESSAGE(message.find(rule) != std::string::npos, broken.kernel, ", ", how, ": ", message);
}

StepCase find_case(const std::string& kernel) {
  for (StepCase& found : list_product_cases()) {
    if (found.kernel == kernel) return found;
  }
  FAIL("there is no case of " << kernel);
  return {};
}

// A dtype outside of the set.
std::optional<Dtype> find_refused(const DtypeSet& dtypes) {
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::i64}) {
    if (!dtypes.holds(dtype)) return dtype;
  }
  return {};
}

bool has_elements(const TestTensor& tensor) { return count_elements(tensor.sizes) > 1; }

void break_operand(const StepCase& valid, const ValueRule& rule, size_t i) {
  const std::string name = quote(rule.name);
  StepCase broken = valid;
  if (rule.presence == Presence::absent) {
    broken.operands.resize(std::max(broken.operands.size(), i + 1));
    broken.operands[i] = make_f32({1});
    return check_refused(broken, name, "operand given");
  }
  if (i >= valid.operands.size() || !valid.operands[i]) return;
  if (rule.presence == Presence::required) {
    broken.operands[i].reset();
    check_refused(broken, name, "operand missing");
  }
  broken = valid;
  if (const auto dtype = find_refused(rule.dtypes)) {
    broken.operands[i]->dtype = *dtype;
    check_refused(broken, name, "dtype of operand");
  }
  broken = valid;
  broken.operands[i]->is_expanded = true;
  if (rule.layout == ValueLayout::any) {
    CHECK_MESSAGE(refuse(broken).empty(), valid.kernel, ", expanded operand ", name);
  } else if (has_elements(*valid.operands[i])) {
    check_refused(broken, name, "expanded operand");
  }
  broken = valid;
  broken.operands[i]->format = Format::channels_last;
  if (rule.layout == ValueLayout::row_major && valid.operands[i]->sizes.size() == 4)
    check_refused(broken, name, "operand in another order");
  broken.operands[i]->format = Format::row_major;
  if (rule.layout == ValueLayout::channels_last) check_refused(broken, name, "operand in another order");
}

void break_result(const StepCase& valid, const ValueRule& rule, size_t i) {
  const std::string name = quote(rule.name);
  StepCase broken = valid;
  if (const auto dtype = find_refused(rule.dtypes)) {
    broken.results[i].dtype = *dtype;
    check_refused(broken, name, "dtype of result");
  }
  broken = valid;
  broken.results[i].format = valid.results[i].format == Format::row_major ? Format::channels_last : Format::row_major;
  if (rule.layout != ValueLayout::dense && valid.results[i].sizes.size() == 4)
    check_refused(broken, name, "result in another order");
}

void break_number(const StepCase& valid, const AttributeRule& rule, Attribute value, const std::string& how) {
  StepCase broken = valid;
  broken.set(std::string(rule.name), std::move(value));
  check_refused(broken, quote(rule.name), how);
}

// Values that the rule allows, at its ends: the binder refuses them, or the step runs.
void try_number(const StepCase& valid, const AttributeRule& rule, Attribute value) {
  StepCase tried = valid;
  tried.set(std::string(rule.name), std::move(value));
  static_cast<void>(refuse(tried));
}

void break_attribute(const StepCase& valid, const AttributeRule& rule) {
  StepCase broken = valid;
  if (rule.required) {
    std::erase_if(broken.attributes, [&](const auto& entry) { return entry.first == rule.name; });
    check_refused(broken, quote(rule.name), "attribute missing");
  }
  const bool is_text = rule.type == AttributeType::text;
  break_number(valid, rule, is_text ? Attribute(int64_t{1}) : Attribute(std::string("1")), "type of attribute");
  if (is_text) return break_number(valid, rule, std::string("no such word"), "unknown word");
  const auto pack = [&](int64_t number) {
    return rule.type == AttributeType::integers ? Attribute(Ints{number, number}) : Attribute(number);
  };
  if (rule.type == AttributeType::number) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (!rule.nan_allowed) break_number(valid, rule, nan, "NaN");
    if (rule.nan_allowed) try_number(valid, rule, nan);
    if (std::isfinite(rule.smallest)) break_number(valid, rule, rule.smallest - 1, "below its range");
    try_number(valid, rule, 1e300);
    return try_number(valid, rule, std::numeric_limits<double>::infinity());
  }
  if (rule.least > INT64_MIN) break_number(valid, rule, pack(rule.least - 1), "below its range");
  if (rule.most < INT64_MAX) break_number(valid, rule, pack(rule.most + 1), "above its range");
  try_number(valid, rule, pack(rule.least));
  try_number(valid, rule, pack(rule.most));
  if (rule.type == AttributeType::integers) {
    break_number(valid, rule, Ints{1, 1, 1, 1}, "more numbers than dimensions");
    break_number(valid, rule, Ints{}, "no numbers");
  }
}

// One size of one value is another: refused, unless the step takes it.
void change_sizes(const StepCase& valid) {
  const auto change = [&](const auto& pick) {
    for (size_t dim = 0; dim < pick(const_cast<StepCase&>(valid)).sizes.size(); ++dim) {
      for (const int64_t by : {-1, 1, 40}) {
        StepCase changed = valid;
        pick(changed).sizes[dim] += by;
        static_cast<void>(refuse(changed));
      }
    }
  };
  for (size_t i = 0; i < valid.operands.size(); ++i) {
    if (valid.operands[i]) change([i](StepCase& from) -> TestTensor& { return *from.operands[i]; });
  }
  for (size_t i = 0; i < valid.results.size(); ++i)
    change([i](StepCase& from) -> TestTensor& { return from.results[i]; });
}

}  // namespace

TEST_CASE("steps of products and windows bind and run") {
  for (const StepCase& valid : list_product_cases()) {
    const std::string message = refuse(valid);
    CHECK_MESSAGE(message.empty(), valid.kernel, ": ", message);
  }
}

TEST_CASE("every rule of the schema of a product or window, broken once, is refused by name") {
  for (const StepCase& valid : list_product_cases()) {
    const StepSchema& schema = find_step_row(valid.kernel).schema;
    for (size_t i = 0; i < schema.operands.size(); ++i) break_operand(valid, schema.operands[i], i);
    for (size_t i = 0; i < schema.results.size(); ++i) break_result(valid, schema.results[i], i);
    for (const AttributeRule& rule : schema.attributes) break_attribute(valid, rule);
    StepCase broken = valid;
    broken.operands.resize(schema.operands.size());
    broken.operands.emplace_back(make_f32({1}));
    check_refused(broken, "operand", "one operand more");
    broken = valid;
    broken.results.push_back(make_f32({1}));
    check_refused(broken, "results are given", "one result more");
    broken = valid;
    broken.set("no_such_attribute", int64_t{1});
    check_refused(broken, quote("no_such_attribute"), "unknown attribute");
    if (valid.results.size() < 2) continue;
    broken = valid;
    broken.results.pop_back();
    check_refused(broken, quote(schema.results.back().name), "one result fewer");
  }
}

TEST_CASE("every size of a product or window, changed alone, is refused or fits") {
  for (const StepCase& valid : list_product_cases()) change_sizes(valid);
}

TEST_CASE("scales and zero points of rows are dense") {
  for (const size_t position : {size_t{6}, size_t{7}}) {
    StepCase broken = find_case("linear_u8s8");
    broken.operands[position]->is_expanded = true;
    check_refused(broken, position == 6 ? quote("row_scales") : quote("row_zeros"), "expanded");
    broken = find_case("linear_u8s8");
    broken.operands[position].reset();
    check_refused(broken, "come together", "one without the other");
  }
}

TEST_CASE("packed weights of bytes are dense") {
  for (const char* kernel : {"conv_u8s8", "conv_transposed_u8s8"}) {
    StepCase broken = find_case(kernel);
    broken.operands[1]->is_expanded = true;
    check_refused(broken, quote("weight"), "expanded");
  }
}

TEST_CASE("zero points and sums of weights at the ends of their range wrap around") {
  Plan plan = make_plan(find_case("linear_u8s8"));
  for (const int position : {3, 7}) {
    const PlanValueId value = plan.steps.back().operands[static_cast<size_t>(position)];
    const Array& array = plan.arrays[static_cast<size_t>(plan.value(value).array)].array;
    for (int64_t i = 0; i < array.elements(); ++i) array.data<int32_t>()[i] = INT32_MIN;
  }
  Session session(std::make_shared<Plan>(plan));
  CHECK(session.run(std::vector<TensorView>{}).size() == 1);
}

// Kernels take denormals for zero: y would have a quarter of the bytes that they write.
TEST_CASE("the inverse of a scale is no denormal") {
  for (const char* kernel : {"conv_u8s8", "linear_u8s8"}) {
    StepCase broken = find_case(kernel);
    if (broken.results[0].dtype != Dtype::u8) broken.results[0].dtype = Dtype::u8;
    broken.set("out_inverse", 1e-40);
    check_refused(broken, quote("out_inverse"), "denormal");
  }
}

TEST_CASE("an image has as many windows as its size, stride and padding give") {
  // A product of pixels would read x as far as y reaches.
  StepCase broken = find_case("conv_u8s8");
  const TestTensor y = make_image(Dtype::u8, {2, 4, 90, 90});
  broken.attributes = make_window(1, 1, 0);
  broken.set("out_inverse", 2.0);
  broken.operands[1] = TestTensor{Dtype::i8, {packed_u8s8_size(4, 3, {})}};
  broken.operands[5] = broken.results[0] = y;
  check_refused(broken, "does not slide", "y larger than x");
  broken.operands[5] = broken.results[0] = make_image(Dtype::u8, {2, 4, 5, 5});
  CHECK(refuse(broken).empty());
  for (const char* kernel : {"conv_f32", "depthwise_f32", "pool", "conv_weight_f32", "max_pool_indices",
                             "conv_data_f32", "depthwise_transposed_f32", "col2im", "winograd_u8s8"}) {
    StepCase padded = find_case(kernel);
    padded.set("padding", Ints{900, 900});
    check_refused(padded, "does not slide", "padding");
    StepCase strided = find_case(kernel);
    strided.set("stride", Ints{60, 60});
    CHECK_MESSAGE(!refuse(strided).empty(), kernel);
  }
}

TEST_CASE("a gradient of a pool without windows is refused") {
  StepCase broken = find_case("max_pool_gradient");
  broken.operands[0]->sizes[2] = broken.operands[1]->sizes[2] = 0;
  check_refused(broken, "dy is empty", "no windows");
}

TEST_CASE("empty values of sizes that no loop could walk are refused") {
  const int64_t many = int64_t{1} << 30;
  for (const char* kernel : {"softmax_bf16", "linear_f32", "matmul_f32", "conv_f32"}) {
    StepCase broken = find_case(kernel);
    for (TestTensor& result : broken.results) result.sizes = {many, many, 0};
    check_refused(broken, "sizes of 0 counted as 1", "empty result");
  }
}

TEST_CASE("an empty batch runs") {
  for (const char* kernel : {"conv_f32", "pool", "depthwise_f32", "conv_u8s8", "conv_bf16", "winograd_f32", "col2im"}) {
    StepCase empty = find_case(kernel);
    empty.operands[0]->sizes[0] = empty.results[0].sizes[0] = 0;
    for (const size_t residual : {size_t{3}, size_t{5}}) {
      if (residual < empty.operands.size() && empty.operands[residual] && empty.operands[residual]->sizes.size() == 4)
        empty.operands[residual]->sizes[0] = 0;
    }
    const std::string message = refuse(empty);
    CHECK_MESSAGE(message.empty(), kernel, ": ", message);
  }
}

TEST_CASE("sums that repeat one product without end are refused") {
  const int64_t many = int64_t{1} << 40;
  StepCase broken = {"matmul_f32", {}, {make_f32({1, many}), make_f32({many, 1})}, {make_f32({1, 1})}};
  for (std::optional<TestTensor>& operand : broken.operands) operand->is_expanded = true;
  check_refused(broken, "repeat one product", "expanded");
}

TEST_CASE("windows of more than 512 numbers are packed") {
  StepCase wide = find_case("pack_conv_f32");
  wide.attributes = make_window(700, 1, 0, 1);
  wide.operands[0] = make_f32({4, 3, 700});
  wide.results[0] = make_f32({packed_conv_f32_size(4, 3, 1, 700)});
  Plan plan = make_plan(wide);
  const Array& weight = plan.arrays[0].array;
  for (int64_t i = 0; i < weight.elements(); ++i) weight.data<float>()[i] = static_cast<float>(i);
  std::vector<float> expected(static_cast<size_t>(packed_conv_f32_size(4, 3, 1, 700)));
  pack_conv_f32(weight.data<float>(), 4, 3, 1, 700, expected.data());
  Session session(std::make_shared<Plan>(plan));
  const Array packed = session.run(std::vector<TensorView>{}).at(0);
  CHECK(std::equal(expected.begin(), expected.end(), packed.data<float>()));
}

TEST_CASE("scratch is bounded, whatever its factors are") {
  Plan plan;
  plan.steps.emplace_back();
  BindingParts parts;
  parts.steps.emplace_back();
  StepBinder binder(plan, 0, parts);
  binder.point_scratch(&LinearF32Call::scratch, {3, 5, 4});
  CHECK(parts.scratch.back().bytes == 60);
  const int64_t many = int64_t{1} << 40;
  CHECK_THROWS_AS(binder.point_scratch(&LinearF32Call::scratch, {many, many, 4}), Error);
  CHECK_THROWS_AS(binder.point_scratch(&LinearF32Call::scratch, {2, -1}), Error);
  CHECK_THROWS_AS(binder.point_scratch(&LinearF32Call::scratch, {kLargestBytes, 2}), Error);
}
