#include "lissome/runtime/step/step_product_cases.h"

#include <doctest/doctest.h>

#include "lissome/kernel.h"
#include "lissome/runtime/session/session.h"

namespace lissome {
namespace {

using Ints = std::vector<int64_t>;

std::vector<SizeExpression> list_sizes(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

}  // namespace

void StepCase::set(const std::string& name, Attribute value) {
  for (auto& [entry, held] : attributes) {
    if (entry == name) {
      held = std::move(value);
      return;
    }
  }
  attributes.emplace_back(name, std::move(value));
}

TestTensor make_f32(Sizes sizes) { return {Dtype::f32, std::move(sizes)}; }
TestTensor make_image(Dtype dtype, Sizes sizes) { return {dtype, std::move(sizes), Format::channels_last}; }

TestAttributes make_window(int64_t kernel, int64_t stride, int64_t padding, size_t rank) {
  return {{"kernel", Ints(rank, kernel)}, {"stride", Ints(rank, stride)}, {"padding", Ints(rank, padding)}};
}

// Operands are constants of zeros, seen through a view where they are expanded; results are outputs.
Plan make_plan(const StepCase& from) {
  Plan plan;
  const auto add_value = [&](const TestTensor& tensor, std::string name, Storage storage) {
    PlanValue value = {std::move(name), storage, PlanKind::tensor, tensor.dtype, true, list_sizes(tensor.sizes),
                       tensor.format,   -1};
    return plan.add_value(std::move(value));
  };
  const auto add_constant = [&](const TestTensor& tensor, const std::string& name) {
    const PlanValueId id = add_value(tensor, name, Storage::constant);
    plan.values.back().array = static_cast<int>(plan.arrays.size());
    plan.arrays.push_back({name, true, make_array(tensor.dtype, tensor.sizes)});
    return id;
  };
  PlanStep step;
  step.kernel = from.kernel;
  for (const auto& [name, value] : from.attributes) step.attributes.set(name, value);
  for (size_t i = 0; i < from.operands.size(); ++i) {
    if (!from.operands[i]) {
      step.operands.push_back(PlanValueId::none);
      continue;
    }
    const TestTensor& tensor = *from.operands[i];
    const std::string name = "operand" + std::to_string(i);
    if (!tensor.is_expanded) {
      step.operands.push_back(add_constant(tensor, name));
      continue;
    }
    PlanStep view;
    view.kernel = "view";
    view.attributes.set("form", std::string("expand"));
    view.operands = {add_constant({tensor.dtype, Sizes(tensor.sizes.size(), 1)}, name + ".one")};
    view.results = {add_value(tensor, name, Storage::view)};
    step.operands.push_back(view.results[0]);
    plan.steps.push_back(view);
  }
  for (size_t i = 0; i < from.results.size(); ++i) {
    const std::string name = "result" + std::to_string(i);
    step.results.push_back(add_value(from.results[i], name, Storage::arena));
    plan.outputs.push_back({name, step.results.back(), {}});
  }
  plan.steps.push_back(std::move(step));
  return plan;
}

// Empty when the step binds and runs; else what it is refused with.
std::string refuse(const StepCase& from) {
  try {
    Session session(std::make_shared<Plan>(make_plan(from)), {.threads = 1});
    session.run(std::vector<TensorView>{});
    return {};
  } catch (const Error& error) {
    CHECK_MESSAGE(error.kind() == ErrorKind::invalid_input, from.kernel, ": ", error.what());
    return error.message();
  }
}

namespace {

TestAttributes join(TestAttributes left, const TestAttributes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

void add_convolutions(std::vector<StepCase>& cases) {
  const auto conv = join(make_window(3, 1, 1),
                         {{"dilation", Ints{1, 1}}, {"groups", int64_t{1}}, {"activation", std::string("relu")}});
  const TestTensor x = make_image(Dtype::f32, {2, 3, 5, 5}), y = make_image(Dtype::f32, {2, 4, 5, 5});
  const int64_t packed = packed_conv_f32_size(4, 3, 1, 9);
  cases.push_back({"conv_f32", conv, {x, make_f32({packed}), make_f32({4}), y, make_f32({3})}, {y}});
  cases.push_back({"conv_f32",
                   join(conv, {{"planes", int64_t{1}}}),
                   {make_f32({2, 3, 5, 5}), make_f32({packed}), {}, {}, make_f32({3})},
                   {y}});
  const TestTensor four = make_image(Dtype::f32, {1, 4, 6, 6}), four_bf16 = make_image(Dtype::bf16, {1, 4, 6, 6});
  const TestTensor winograd = make_f32({packed_winograd_f32_size(4, 4, 2)});
  const auto tiles = join(conv, {{"tile", int64_t{2}}});
  cases.push_back({"winograd_f32", tiles, {four, winograd, make_f32({4}), four, make_f32({4})}, {four}});
  cases.push_back({"winograd_f32",
                   tiles,
                   {four_bf16, winograd, make_f32({4}), four_bf16, TestTensor{Dtype::bf16, {4}}},
                   {four_bf16}});
  const auto depthwise = join(make_window(3, 1, 1), {{"groups", int64_t{4}}});
  cases.push_back({"depthwise_f32", depthwise, {four, make_f32({36}), make_f32({4}), four}, {four}});
  cases.push_back({"depthwise_bf16", depthwise, {four_bf16, make_f32({36}), make_f32({4}), four_bf16}, {four_bf16}});
  const auto spread = join(make_window(3, 2, 1), {{"groups", int64_t{4}}});
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const TestTensor large = make_image(dtype, {1, 4, 5, 7});
    cases.push_back({dtype == Dtype::f32 ? "depthwise_transposed_f32" : "depthwise_transposed_bf16",
                     spread,
                     {make_image(dtype, {1, 4, 3, 4}), make_f32({36}), make_f32({4}), large},
                     {large}});
  }
  const TestTensor eight = make_image(Dtype::f32, {1, 8, 6, 6});
  cases.push_back(
      {"separable_f32",
       join(make_window(3, 1, 1), {{"first_activation", std::string("relu")}}),
       {four, make_f32({packed_linear_f32_size(8, 4)}), make_f32({8}), eight, make_f32({36}), make_f32({4})},
       {eight}});
  cases.push_back({"col2im",
                   make_window(3, 2, 1),
                   {make_f32({1, 3, 4, 36}), make_f32({4})},
                   {make_image(Dtype::f32, {1, 4, 5, 7})}});
}

void add_gradients(std::vector<StepCase>& cases) {
  const auto strided = join(make_window(3, 2, 1), {{"groups", int64_t{1}}}),
             plain = join(make_window(3, 1, 1), {{"groups", int64_t{1}}});
  cases.push_back({"conv_data_f32",
                   strided,
                   {make_image(Dtype::f32, {1, 4, 3, 3}), make_f32({packed_conv_data_f32_size(4, 3, 1, 9)}),
                    make_f32({3}), make_f32({4})},
                   {make_image(Dtype::f32, {1, 3, 5, 6})}});
  cases.push_back({"pack_conv_f32", strided, {make_f32({4, 3, 3, 3})}, {make_f32({packed_conv_f32_size(4, 3, 1, 9)})}});
  cases.push_back({"pack_conv_f32",
                   join(strided, {{"packing", std::string("data")}}),
                   {make_f32({4, 3, 3, 3})},
                   {make_f32({packed_conv_data_f32_size(4, 3, 1, 9)})}});
  ConvBf16Call conv;
  conv.in_channels = 3, conv.out_channels = 4, conv.window.kernel_height = conv.window.kernel_width = 3;
  conv.window.stride_height = conv.window.stride_width = 2;
  conv.window.pad_height = conv.window.pad_width = 1;
  cases.push_back(
      {"pack_conv_bf16", strided, {make_f32({4, 3, 3, 3})}, {TestTensor{Dtype::bf16, {packed_conv_bf16_size(conv)}}}});
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const std::string kernel = dtype == Dtype::f32 ? "conv_weight_f32" : "conv_weight_bf16";
    const TestTensor x = make_image(dtype, {2, 3, 5, 5}), dy = make_image(dtype, {2, 4, 5, 5});
    cases.push_back({kernel, plain, {x, dy}, {make_f32({4, 3, 3, 3})}});
    cases.push_back({kernel, join(plain, {{"splits", int64_t{2}}}), {x, dy}, {make_f32({2, 4, 3, 3, 3})}});
    const TestTensor large = make_image(dtype, {1, 5, 4, 6}), small = make_image(dtype, {1, 5, 2, 3});
    const TestTensor indices = make_image(Dtype::u8, {1, 5, 2, 3});
    cases.push_back({"max_pool_indices", make_window(2, 2, 0), {large}, {small, indices}});
    cases.push_back({"max_pool_gradient", make_window(2, 2, 0), {small, indices}, {large}});
    cases.push_back({"pool", make_window(2, 2, 0), {large}, {small}});
    cases.push_back(
        {"pool", join(make_window(2, 2, 0), {{"average", int64_t{1}}, {"divisor", int64_t{3}}}), {large}, {small}});
  }
  const TestTensor bytes = make_image(Dtype::u8, {1, 5, 4, 6}), fewer = make_image(Dtype::u8, {1, 5, 2, 3});
  cases.push_back({"pool", make_window(2, 2, 0), {bytes}, {fewer}});
  cases.push_back({"average_pool_u8",
                   join(make_window(2, 2, 0), {{"x_scale", 0.5}, {"out_inverse", 2.0}, {"out_zero", int64_t{3}}}),
                   {bytes},
                   {fewer}});
  cases.push_back({"lut_u8", {}, {bytes, TestTensor{Dtype::u8, {256}}}, {bytes}});
}

// Those that bytes are multiplied by: weight, multiplier, sums, bias.
std::vector<std::optional<TestTensor>> join_bytes(const TestTensor& x, const TestTensor& weight, int64_t outputs) {
  return {x, weight, make_f32({outputs}), TestTensor{Dtype::i32, {outputs}}, make_f32({outputs})};
}

void add_bytes(std::vector<StepCase>& cases) {
  const auto add = [&](const std::string& kernel, TestAttributes attributes,
                       std::vector<std::optional<TestTensor>> operands,
                       const std::vector<std::optional<TestTensor>>& more, const TestTensor& y) {
    operands.insert(operands.end(), more.begin(), more.end());
    cases.push_back({kernel, std::move(attributes), std::move(operands), {y}});
  };
  cases.push_back({"quantize_rows",
                   {},
                   {make_f32({3, 9}), make_f32({9})},
                   {TestTensor{Dtype::u8, {3, 9}}, make_f32({3}), TestTensor{Dtype::i32, {3}}}});
  cases.push_back({"quantize_image",
                   {{"inverse", 2.0}, {"zero", int64_t{4}}},
                   {make_f32({2, 3, 4, 5})},
                   {make_image(Dtype::u8, {2, 3, 4, 5})}});
  const TestTensor rows = {Dtype::u8, {7, 9}}, row_weight = {Dtype::i8, {packed_u8s8_size(5, 9, {})}};
  add("linear_u8s8", {{"outputs", int64_t{5}}}, join_bytes(rows, row_weight, 5),
      {make_f32({7, 5}), make_f32({7}), TestTensor{Dtype::i32, {7}}}, make_f32({7, 5}));
  const TestTensor small = {Dtype::u8, {7, 5}};
  add("linear_u8s8", {{"outputs", int64_t{5}}, {"out_inverse", 2.0}, {"residual_scale", 0.5}, {"x_zero", int64_t{3}}},
      join_bytes(rows, row_weight, 5), {small}, small);
  const TestTensor x = make_image(Dtype::u8, {2, 3, 5, 5}), y = make_image(Dtype::u8, {2, 4, 5, 5}),
                   border = {Dtype::u8, {3}};
  const auto bytes = TestAttributes{{"out_inverse", 2.0}, {"groups", int64_t{1}}};
  const TestTensor weight = {Dtype::i8, {packed_u8s8_size(4, 3, {9, 3})}};
  add("conv_u8s8", join(make_window(3, 1, 1), bytes), join_bytes(x, weight, 4), {y, {}, {}, border}, y);
  const TestTensor wide = make_image(Dtype::u8, {1, 32, 5, 5}), wide_y = make_image(Dtype::f32, {1, 32, 5, 5});
  add("winograd_u8s8", make_window(3, 1, 1), join_bytes(wide, {Dtype::i16, {packed_winograd_u8s8_size(32, 32)}}, 32),
      {wide_y, {}, {}, TestTensor{Dtype::u8, {32}}}, wide_y);
  Window three;
  three.kernel_height = three.kernel_width = 3;
  const TestTensor narrow = make_image(Dtype::bf16, {1, 32, 5, 5});
  add("depthwise_u8s8", join(make_window(3, 1, 1), {{"groups", int64_t{32}}}),
      join_bytes(wide, {Dtype::i8, {packed_depthwise_u8s8_size(32, three)}}, 32), {narrow}, narrow);
  add("conv_transposed_u8s8", {{"kernel", Ints{2, 2}}}, join_bytes(x, {Dtype::i8, {packed_u8s8_size(128, 3, {})}}, 128),
      {}, make_image(Dtype::f32, {2, 32, 10, 10}));
}

void add_products(std::vector<StepCase>& cases) {
  const auto outputs = TestAttributes{{"outputs", int64_t{5}}, {"activation", std::string("gelu")}};
  cases.push_back({"linear_f32",
                   outputs,
                   {make_f32({3, 7, 9}), make_f32({packed_linear_f32_size(5, 9)}), make_f32({5}), make_f32({3, 7, 5})},
                   {make_f32({3, 7, 5})}});
  const auto bf16 = [](Sizes sizes) { return TestTensor{Dtype::bf16, std::move(sizes)}; };
  cases.push_back({"linear_bf16",
                   outputs,
                   {bf16({7, 9}), bf16({packed_linear_bf16_size(5, 9)}), make_f32({5}), bf16({7, 5})},
                   {bf16({7, 5})}});
  ConvBf16Call conv;
  conv.in_channels = 32, conv.out_channels = 4, conv.window.kernel_height = conv.window.kernel_width = 3;
  conv.window.pad_height = conv.window.pad_width = 1;
  const auto same = join(make_window(3, 1, 1), {{"groups", int64_t{1}}});
  const TestTensor y = make_image(Dtype::bf16, {2, 4, 5, 5});
  cases.push_back({"conv_bf16",
                   same,
                   {make_image(Dtype::bf16, {2, 32, 5, 5}), bf16({packed_conv_bf16_size(conv)}), make_f32({4}), y},
                   {y}});
  conv.in_channels = 3, conv.planes = true;
  cases.push_back({"conv_bf16",
                   join(same, {{"planes", int64_t{1}}}),
                   {make_f32({2, 3, 5, 5}), bf16({packed_conv_bf16_size(conv)}), {}, y},
                   {y}});
  conv.planes = false, conv.transposed = true, conv.window.stride_height = conv.window.stride_width = 2;
  const TestTensor larger = make_image(Dtype::bf16, {2, 4, 9, 9});
  cases.push_back({"conv_bf16",
                   join(make_window(3, 2, 1), {{"groups", int64_t{1}}, {"transposed", int64_t{1}}}),
                   {make_image(Dtype::bf16, {2, 3, 5, 5}), bf16({packed_conv_bf16_size(conv)}), make_f32({4}), larger},
                   {larger}});
  cases.push_back({"layer_norm_bf16",
                   {{"width", int64_t{9}}, {"epsilon", 1e-5}},
                   {bf16({3, 9}), bf16({9}), bf16({9})},
                   {bf16({3, 9})}});
  cases.push_back({"softmax_bf16", {}, {bf16({3, 9})}, {bf16({3, 9})}});
  cases.push_back({"matmul_f32",
                   {},
                   {make_f32({2, 7, 9}), make_f32({9, 5}), make_f32({5}), make_f32({2, 7, 5}), make_f32({2, 7, 5})},
                   {make_f32({2, 7, 5})}});
  cases.push_back({"matmul_f32", {{"linear", int64_t{1}}}, {make_f32({7, 9}), make_f32({5, 9})}, {make_f32({7, 5})}});
  cases.push_back(
      {"matmul_bf16", {}, {bf16({2, 7, 9}), make_f32({9, 5}), bf16({5}), bf16({2, 7, 5})}, {bf16({2, 7, 5})}});
}

void add_recurrent(std::vector<StepCase>& cases) {
  const auto attributes = TestAttributes{{"size", int64_t{6}}, {"directions", int64_t{2}}};
  const auto add = [&](const std::string& kernel, int64_t gates, const TestTensor& weight, bool scaled) {
    const bool lstm = gates == 4;
    const TestTensor state = make_f32({2, 3, 6});
    StepCase made = {
        kernel, attributes, {make_f32({4, 3, 2 * gates * 6}), weight, {}, state}, {make_f32({4, 3, 12}), state}};
    if (lstm) {
      made.operands.emplace_back(state);
      made.results.push_back(state);
    } else {
      made.operands[2] = make_f32({2 * gates * 6});
      made.operands.emplace_back();
    }
    if (scaled) {
      made.operands.emplace_back(make_f32({2 * gates * 6}));
      made.operands.emplace_back(TestTensor{Dtype::i32, {2 * gates * 6}});
    }
    cases.push_back(std::move(made));
  };
  for (const int64_t gates : {int64_t{3}, int64_t{4}}) {
    const std::string kernel = gates == 4 ? "lstm" : "gru";
    add(kernel, gates, make_f32({2 * packed_linear_f32_size(gates * 6, 6)}), false);
    add(kernel + "_bf16", gates, {Dtype::bf16, {2 * packed_linear_bf16_size(gates * 6, 6)}}, false);
    add(kernel + "_u8s8", gates, {Dtype::i8, {2 * packed_u8s8_size(gates * 6, 6, {})}}, true);
  }
}

}  // namespace

std::vector<StepCase> list_product_cases() {
  std::vector<StepCase> cases;
  add_convolutions(cases);
  add_gradients(cases);
  add_bytes(cases);
  add_products(cases);
  add_recurrent(cases);
  return cases;
}

}  // namespace lissome
