// Plans may come from untrusted files. Here every number and word of some plans is changed, one at a time: each must be
// refused with an error of ours, or run inside its memory. The address sanitizer is the judge of the second.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "lissome/lower.h"

using namespace lissome;

namespace {

using Weights = std::vector<std::pair<std::string, at::Tensor>>;

// Small, and so large that nothing holds it; what lies between is only slow.
constexpr int64_t kNumbers[] = {-2, -1, 0, 1, 2, 3, 7, 64, 65, 300, int64_t{1} << 44, INT64_MAX};
constexpr const char* kWords[] = {"input",
                                  "constant",
                                  "state",
                                  "arena",
                                  "view",
                                  "held",
                                  "integer",
                                  "boolean",
                                  "f32",
                                  "u8",
                                  "i64",
                                  "i16",
                                  "channels_last",
                                  "reshape",
                                  "split",
                                  "permute",
                                  "expand",
                                  "slice",
                                  "select",
                                  "copy",
                                  "gather_rows",
                                  "reduce",
                                  "pool",
                                  "elementwise",
                                  "softmax",
                                  "layer_norm",
                                  "linear_f32",
                                  "conv_f32",
                                  "depthwise_f32",
                                  "depthwise_bf16",
                                  "attention",
                                  "quantize_rows",
                                  "quantize_groups",
                                  "linear_group",
                                  "batch",
                                  "concat",
                                  "gather",
                                  "lstm",
                                  "gru",
                                  "winograd_u8s8",
                                  "gru_u8s8",
                                  "find_largest",
                                  "merge",
                                  "winograd_f32",
                                  "col2im",
                                  "depthwise_transposed_f32",
                                  "conv_data_f32",
                                  "linear_bf16",
                                  "separable_f32",
                                  "conv_bf16",
                                  "depthwise_u8s8",
                                  "average_pool_u8",
                                  "lut_u8"};

ModelFile make_file(const char* text, const Weights& weights, const std::vector<ForcedKernel>& forced) {
  LowerOptions options;
  options.effort = Effort::fast;
  options.forced = forced;
  const Plan plan = lower_program(parse_program(text, weights), options);
  CHECK_FALSE(plan.needs_reference());
  ModelFile file;
  put_plan(file, plan);
  return file;
}

// Element-wise programs are texts: "add 3 0 1 0 0 0".
std::vector<std::string> change_text(const std::string& text) {
  std::vector<std::string> changed;
  std::istringstream stream(text);
  std::vector<std::string> tokens;
  for (std::string token; stream >> token;) tokens.push_back(token);
  for (size_t i = 1; i < tokens.size(); ++i) {
    for (const char* number : {"-1", "1", "5", "6", "9", "10", "12", "255", "256", "nan"}) {
      std::vector<std::string> other = tokens;
      other[i] = number;
      changed.push_back(join(other, " "));
    }
  }
  return changed;
}

std::vector<Json> list_changes(const Json& leaf) {
  std::vector<Json> changes;
  if (leaf.is_number_integer()) {
    for (const int64_t number : kNumbers) changes.emplace_back(number);
  } else if (leaf.is_string() && leaf.get<std::string>().find(' ') != std::string::npos) {
    for (const std::string& text : change_text(leaf.get<std::string>())) changes.emplace_back(text);
  } else if (leaf.is_string()) {
    for (const char* word : kWords) changes.emplace_back(word);
  }
  return changes;
}

struct Outcomes {
  int refused = 0, ran = 0;
};

void try_plan(ModelFile& file, const std::vector<TensorView>& inputs, Outcomes& outcomes) {
  try {
    Session session(std::make_shared<Plan>(read_plan(file)), {.threads = 2});
    for (int run = 0; run < 2; ++run) session.run(inputs);
    ++outcomes.ran;
  } catch (const Error& error) {
    CHECK(error.kind() != ErrorKind::internal);
    ++outcomes.refused;
  }
}

void check_plan_changes(const char* text, const Weights& weights, const std::vector<at::Tensor>& tensors,
                        const std::vector<ForcedKernel>& forced = {}) {
  ModelFile file = make_file(text, weights, forced);
  std::vector<TensorView> inputs;
  for (const at::Tensor& tensor : tensors) {
    inputs.push_back({dtype_of(tensor.scalar_type()), tensor.sizes().vec(), tensor.strides().vec(), tensor.data_ptr()});
  }
  Outcomes unchanged, outcomes;
  try_plan(file, inputs, unchanged);
  CHECK(unchanged.ran == 1);
  const Json plan = parse_json(file.plan, "plan");
  const Json leaves = plan.flatten();
  for (const auto& [pointer, leaf] : leaves.items()) {
    if (pointer.starts_with("/choices") || pointer.starts_with("/machine") ||
        pointer.find("/origins") != std::string::npos) {
      continue;
    }
    for (Json& change : list_changes(leaf)) {
      Json changed = plan;
      changed[Json::json_pointer(pointer)] = std::move(change);
      file.plan = print_json(changed);
      CAPTURE(pointer);
      CAPTURE(file.plan);
      try_plan(file, inputs, outcomes);
    }
  }
  CHECK(outcomes.refused > outcomes.ran / 4);
  CHECK(outcomes.ran > 0);
}

}  // namespace

TEST_CASE("changed plans of a convolutional net are refused or stay inside their memory") {
  check_plan_changes(R"(
    dim batch in 1..4
    input %x: f32[batch, 3, 9, 8]
    parameter @c: f32[20, 3, 3, 3]
    parameter @b: f32[20]
    parameter @dw: f32[20, 1, 3, 3]
    parameter @fc: f32[10, 20]
    %1: f32[batch, 20, 9, 8] = lissome::conv_act(%x, @c, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
    %2: f32[batch, 20, 4, 4] = aten::max_pool2d(%1, [2, 2])
    %3: f32[batch, 20, 4, 4] =
      lissome::conv_act(%2, @dw, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 20, "none", residual=%2)
    %4: f32[batch, 20] = aten::mean.dim(%3, [2, 3])
    %5: f32[batch, 10] = aten::linear(%4, @fc)
    %6: f32[batch, 10] = aten::softmax.int(%5, -1)
    return %6, %1
  )",
                     {{"c", at::randn({20, 3, 3, 3})},
                      {"b", at::randn({20})},
                      {"dw", at::randn({20, 1, 3, 3})},
                      {"fc", at::randn({10, 20})}},
                     {at::randn({2, 3, 9, 8})});
}

TEST_CASE("changed plans of a transformer are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %ids: i64[2, 5]
    input %mask: f32[2, 1, 1, 5]
    parameter @table: f32[11, 12]
    parameter @n: f32[12]
    parameter @qkv: f32[36, 12]
    %0: f32[2, 5, 12] = aten::embedding(@table, %ids)
    %1: f32[2, 5, 12] = aten::layer_norm(%0, [12], @n)
    %2: f32[2, 5, 36] = aten::linear(%1, @qkv)
    %q1: f32[2, 5, 12] = aten::slice.Tensor(%2, -1, 0, 12)
    %k1: f32[2, 5, 12] = aten::slice.Tensor(%2, -1, 12, 24)
    %v1: f32[2, 5, 12] = aten::slice.Tensor(%2, -1, 24, 36)
    %q2: f32[2, 5, 3, 4] = aten::reshape(%q1, [2, 5, 3, 4])
    %k2: f32[2, 5, 3, 4] = aten::reshape(%k1, [2, 5, 3, 4])
    %v2: f32[2, 5, 3, 4] = aten::reshape(%v1, [2, 5, 3, 4])
    %q: f32[2, 3, 5, 4] = aten::transpose.int(%q2, 1, 2)
    %k: f32[2, 3, 5, 4] = aten::transpose.int(%k2, 1, 2)
    %v: f32[2, 3, 5, 4] = aten::transpose.int(%v2, 1, 2)
    %m: f32[2, 3, 5, 5] = aten::expand(%mask, [2, 3, 5, 5])
    %a: f32[2, 3, 5, 4] = aten::scaled_dot_product_attention(%q, %k, %v, %m)
    %t: f32[2, 5, 3, 4] = aten::transpose.int(%a, 1, 2)
    %r: f32[2, 5, 12] = aten::reshape(%t, [2, 5, 12])
    %g: f32[2, 5, 12] = aten::gelu(%r)
    %y: f32[2, 5, 12] = aten::add.Tensor(%g, %0, alpha=2)
    %first: f32[2, 12] = aten::select.int(%y, 1, 0)
    return %y, %first
  )",
                     {{"table", at::randn({11, 12})}, {"n", at::randn({12})}, {"qkv", at::randn({36, 12})}},
                     {at::randint(0, 11, {2, 5}, at::kLong), at::randn({2, 1, 1, 5})});
}

TEST_CASE("changed plans of a depthwise convolution joined with a 1x1 are refused or stay inside their memory") {
  check_plan_changes(R"(
    dim batch in 1..4
    input %x: f32[batch, 20, 9, 8]
    input %z: f32[batch, 12, 5, 4]
    parameter @d: f32[20, 1, 3, 3]
    parameter @db: f32[20]
    parameter @p: f32[12, 20, 1, 1]
    parameter @pb: f32[12]
    %1: f32[batch, 20, 5, 4] = lissome::conv_act(%x, @d, @db, [2, 2], [1, 1], [1, 1], false, [0, 0], 20, "relu6")
    %2: f32[batch, 12, 5, 4] =
      lissome::conv_act(%1, @p, @pb, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "none", residual=%z)
    return %2
  )",
                     {{"d", at::randn({20, 1, 3, 3})},
                      {"db", at::randn({20})},
                      {"p", at::randn({12, 20, 1, 1})},
                      {"pb", at::randn({12})}},
                     {at::randn({2, 20, 9, 8}), at::randn({2, 12, 5, 4})}, {{"*", "separable_f32"}});
}

TEST_CASE("changed plans of int8 layers are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[2, 5, 6, 6]
    parameter @w1: i8[12, 5, 3, 3]
    parameter @s1: f32[12]
    parameter @w2: i8[12, 1, 3, 3]
    parameter @w3: i8[6, 108]
    parameter @s3: f32[6]
    %0: u8[2, 5, 6, 6] = lissome::quantize(%x, 0.02, 120)
    %1: u8[2, 12, 6, 6] =
      lissome::conv_int8_u8(%0, 0.02, 120, @w1, @s1, none, [1, 1], [1, 1], [1, 1], 1, "relu", none, 0.05, 0)
    %d: u8[2, 12, 6, 6] =
      lissome::conv_int8_u8(%1, 0.05, 0, @w2, @s1, none, [1, 1], [1, 1], [1, 1], 12, "relu", none, 0.05, 0)
    %2: u8[2, 12, 3, 3] = aten::max_pool2d(%d, [2, 2])
    %3: f32[2, 12, 3, 3] = lissome::dequantize(%2, 0.05, 0)
    %4: f32[2, 108] = aten::reshape(%3, [2, 108])
    %5: f32[2, 6] = lissome::linear_dynamic_int8(%4, @w3, @s3, none, "none", none)
    return %5
  )",
                     {{"w1", at::randint(-127, 128, {12, 5, 3, 3}, at::kChar)},
                      {"s1", at::rand({12}).mul(0.01)},
                      {"w2", at::randint(-127, 128, {12, 1, 3, 3}, at::kChar)},
                      {"w3", at::randint(-127, 128, {6, 108}, at::kChar)},
                      {"s3", at::rand({6}).mul(0.01)}},
                     {at::randn({2, 5, 6, 6})});
}

TEST_CASE("changed plans of weights in groups are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[3, 64]
    parameter @w4: u8[20, 32]
    parameter @s4: bf16[20, 2]
    parameter @w8: i8[7, 64]
    parameter @s8: bf16[7, 2]
    parameter @b: f32[7]
    %1: f32[3, 20] = lissome::linear_group(%x, @w4, @s4, none, "gelu", none)
    %2: f32[3, 7] = lissome::linear_group(%x, @w8, @s8, @b, "none", none)
    return %1, %2
  )",
                     {{"w4", at::randint(0, 256, {20, 32}, at::kByte)},
                      {"s4", at::rand({20, 2}).mul(0.01).to(at::kBFloat16)},
                      {"w8", at::randint(-128, 128, {7, 64}, at::kChar)},
                      {"s8", at::rand({7, 2}).mul(0.01).to(at::kBFloat16)},
                      {"b", at::randn({7})}},
                     {at::randn({3, 64})});
}

TEST_CASE("changed plans of Winograd convolutions of bytes are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[1, 32, 7, 6]
    parameter @w: i8[32, 32, 3, 3]
    parameter @s: f32[32]
    %0: u8[1, 32, 7, 6] = lissome::quantize(%x, 0.02, 120)
    %1: u8[1, 32, 7, 6] =
      lissome::conv_int8_u8(%0, 0.02, 120, @w, @s, none, [1, 1], [1, 1], [1, 1], 1, "relu", none, 0.05, 0)
    %2: f32[1, 32, 7, 6] = lissome::dequantize(%1, 0.05, 0)
    return %2
  )",
                     {{"w", at::randint(-127, 128, {32, 32, 3, 3}, at::kChar)}, {"s", at::rand({32}).mul(0.01)}},
                     {at::randn({1, 32, 7, 6})}, {{"lissome::conv_int8_u8", "winograd_u8s8"}});
}

TEST_CASE(
    "changed plans of norms with their surroundings and attention of bytes are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[1, 2, 5, 16]
    input %image: bf16[1, 6, 4, 3]
    input %hides: f32[1, 1, 5, 5]
    parameter @c: bf16[6]
    %a: f32[1, 2, 5, 16] = lissome::attention_int8(%x, %x, %x, %hides, true, 0.25)
    %sum: f32[1, 2, 5, 16] = aten::add.Tensor(%a, %x)
    %norm: f32[1, 2, 5, 16] = aten::layer_norm(%sum, [16])
    %more: f32[1, 2, 5, 16] = aten::mul.Tensor(%norm, %sum)
    %group: bf16[1, 6, 4, 3] = aten::group_norm(%image, 2, @c, @c)
    %bent: bf16[1, 6, 4, 3] = aten::silu(%group)
    %large: bf16[1, 6, 8, 6] = aten::upsample_bilinear2d.vec(%bent, none, false, [2.0, 2.0])
    return %more, %large
  )",
                     {{"c", at::randn({6}).to(at::kBFloat16)}},
                     {at::randn({1, 2, 5, 16}), at::randn({1, 6, 4, 3}).to(at::kBFloat16), at::randn({1, 1, 5, 5})});
}

TEST_CASE("changed plans of recurrent layers are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[3, 2, 6]
    input %h: f32[2, 2, 5]
    input %rows: i64[4]
    parameter @a: f32[20, 6]
    parameter @b: f32[20, 5]
    parameter @c: f32[20]
    %y: f32[3, 2, 10], %hn: f32[2, 2, 5], %cn: f32[2, 2, 5] =
      aten::lstm.input(%x, [%h, %h], [@a, @b, @c, @c, @a, @b, @c, @c], true, 1, 0.0, false, true, false)
    %j: f32[3, 4, 10] = aten::cat([%y, %y], 1)
    %t: f32[4, 4, 10] = aten::index.Tensor(%j, [%rows])
    %best: i64[4, 4] = aten::argmax(%t, -1)
    %more: i64[4, 4] = aten::mul.Tensor(%best, %best)
    %flags: bool[4, 4] = aten::gt.Scalar(%more, 9)
    return %t, %flags, %cn
  )",
                     {{"a", at::randn({20, 6})}, {"b", at::randn({20, 5})}, {"c", at::randn({20})}},
                     {at::randn({3, 2, 6}), at::randn({2, 2, 5}), at::randint(-3, 3, {4}, at::kLong)});
}

TEST_CASE("changed plans of recurrent layers of bf16 and s8 are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[3, 2, 40]
    input %g: f32[3, 2, 15]
    input %h: f32[2, 2, 5]
    input %k: f32[1, 2, 5]
    parameter @w: bf16[2, 20, 5]
    parameter @v: i8[1, 15, 5]
    parameter @s: f32[1, 15]
    %y: f32[3, 2, 10], %hn: f32[2, 2, 5], %cn: f32[2, 2, 5] = lissome::lstm_layer(%x, @w, none, %h, %h, false)
    %z: f32[3, 2, 5], %kn: f32[1, 2, 5] = lissome::gru_layer(%g, @v, @s, none, %k, false)
    return %y, %cn, %z, %kn
  )",
                     {{"w", at::randn({2, 20, 5}).to(at::kBFloat16)},
                      {"v", at::randint(-127, 128, {1, 15, 5}, at::kChar)},
                      {"s", at::rand({1, 15}).mul(0.01)}},
                     {at::randn({3, 2, 40}), at::randn({3, 2, 15}), at::randn({2, 2, 5}), at::randn({1, 2, 5})});
}

TEST_CASE("changed plans of transposed and Winograd convolutions are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[1, 18, 7, 6]
    parameter @c: f32[20, 18, 3, 3]
    parameter @t: f32[20, 3, 2, 2]
    parameter @g: f32[20, 3, 2, 2]
    parameter @d: f32[20, 1, 2, 2]
    %1: f32[1, 20, 7, 6] = lissome::conv_act(%x, @c, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
    %2: f32[1, 3, 14, 12] = aten::convolution(%1, @t, none, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)
    %3: f32[1, 6, 14, 12] = aten::convolution(%1, @g, none, [2, 2], [0, 0], [1, 1], true, [0, 0], 2)
    %4: f32[1, 20, 14, 12] = aten::convolution(%1, @d, none, [2, 2], [0, 0], [1, 1], true, [0, 0], 20)
    return %2, %3, %4
  )",
                     {{"c", at::randn({20, 18, 3, 3})},
                      {"t", at::randn({20, 3, 2, 2})},
                      {"g", at::randn({20, 3, 2, 2})},
                      {"d", at::randn({20, 1, 2, 2})}},
                     {at::randn({1, 18, 7, 6})}, {{"lissome::conv_act", "winograd_f32_4x4"}});
}

TEST_CASE("changed plans of Winograd convolutions of bf16 are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[1, 18, 7, 6]
    parameter @c: bf16[20, 18, 3, 3]
    parameter @b: bf16[20]
    %0: bf16[1, 18, 7, 6] = aten::to.dtype(%x, bf16)
    %1: bf16[1, 20, 7, 6] = lissome::conv_act(%0, @c, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
    %2: f32[1, 20, 7, 6] = aten::to.dtype(%1, f32)
    return %2
  )",
                     {{"c", at::randn({20, 18, 3, 3}).to(at::kBFloat16)}, {"b", at::randn({20}).to(at::kBFloat16)}},
                     {at::randn({1, 18, 7, 6})}, {{"lissome::conv_act", "winograd_bf16_4x4"}});
}

TEST_CASE("changed plans of bf16 layers are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[2, 40]
    parameter @w: bf16[36, 40]
    parameter @b: bf16[36]
    parameter @n: bf16[36]
    %0: bf16[2, 40] = aten::to.dtype(%x, bf16)
    %1: bf16[2, 36] = aten::linear(%0, @w, @b)
    %2: bf16[2, 36] = aten::layer_norm(%1, [36], @n)
    %3: bf16[2, 36] = aten::softmax.int(%2, -1)
    %4: f32[2, 36] = aten::to.dtype(%3, f32)
    return %4
  )",
                     {{"w", at::randn({36, 40}).to(at::kBFloat16)},
                      {"b", at::randn({36}).to(at::kBFloat16)},
                      {"n", at::randn({36}).to(at::kBFloat16)}},
                     {at::randn({2, 40})});
}

TEST_CASE("changed plans of bf16 convolutions are refused or stay inside their memory") {
  check_plan_changes(R"(
    input %x: f32[1, 3, 7, 6]
    parameter @c: bf16[32, 3, 3, 3]
    parameter @d: bf16[33, 32, 3, 3]
    parameter @t: bf16[33, 3, 2, 2]
    %0: bf16[1, 3, 7, 6] = aten::to.dtype(%x, bf16)
    %1: bf16[1, 32, 7, 6] = lissome::conv_act(%0, @c, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
    %2: bf16[1, 33, 4, 3] = lissome::conv_act(%1, @d, none, [2, 2], [1, 1], [1, 1], false, [0, 0], 1, "relu")
    %3: bf16[1, 33, 3, 2] = aten::max_pool2d(%2, [2, 2], [1, 1])
    %4: bf16[1, 3, 6, 4] = aten::convolution(%3, @t, none, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)
    %5: bf16[1, 3, 1, 1] = aten::adaptive_avg_pool2d(%4, [1, 1])
    return %5
  )",
                     {{"c", at::randn({32, 3, 3, 3}).to(at::kBFloat16)},
                      {"d", at::randn({33, 32, 3, 3}).to(at::kBFloat16)},
                      {"t", at::randn({33, 3, 2, 2}).to(at::kBFloat16)}},
                     {at::randn({1, 3, 7, 6})});
}
