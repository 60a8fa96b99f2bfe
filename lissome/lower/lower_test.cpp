// Programs through lowering and a session, against interpret().
#include "lissome/lower.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cstdio>
#include <regex>
#include <set>

#include "lissome/lower/program_check.h"

using namespace lissome;

namespace {

// Ends in an operation without kernel of ours, one that does not magnify the rounding of what it is given.
Program make_mlp() {
  return parse_program(
      R"(
    input %x: f32[batch, 30]
    parameter @first.weight: f32[70, 30]
    parameter @first.bias: f32[70]
    parameter @second.weight: f32[10, 70]
    %1: f32[batch, 70] = aten::linear(%x, @first.weight, @first.bias)
    %2: f32[batch, 70] = aten::relu(%1)
    %3: f32[batch, 10] = aten::linear(%2, @second.weight)
    %4: f32[batch, 10] = aten::logcumsumexp(%3, -1)
    return %4
  )",
      {{"first.weight", at::randn({70, 30})}, {"first.bias", at::randn({70})}, {"second.weight", at::randn({10, 70})}});
}

}  // namespace

TEST_CASE("a program with native and reference steps agrees with interpret, for several batch sizes") {
  const Program program = make_mlp();
  const auto plan = std::make_shared<Plan>(lower_program(program));
  CHECK(plan->needs_reference());
  Session session(plan);
  for (const int64_t batch : {1, 5, 64, 5}) {
    const std::vector<c10::IValue> inputs = {at::randn({batch, 30})};
    check_same(run_session(session, inputs), interpret(program, inputs));
  }
}

TEST_CASE("steps and values know their nodes and values of the program that was lowered") {
  const Program program = parse_program(
      R"(
    input %x: f32[batch, 30]
    parameter @first: f32[70, 30]
    parameter @second: f32[10, 70]
    %unread: int = aten::sym_size.int(%x, 0)
    %product: f32[batch, 70] = aten::linear(%x, @first)
    %half: f32[batch, 70] = aten::mul.Tensor(%product, 0.5)
    %bent: f32[batch, 70] = aten::relu(%half)
    %sums: f32[batch, 70] = aten::logcumsumexp(%bent, -1)
    %last: f32[batch, 10] = aten::linear(%sums, @second)
    return %last
  )",
      {{"first", at::randn({70, 30})}, {"second", at::randn({10, 70})}});
  LowerOptions options;
  options.effort = Effort::fast;
  options.forced = {{"last", "mkldnn_linear"}};
  const Plan plan = lower_program(program, options);
  std::vector<std::vector<int>> nodes;
  for (const PlanStep& step : plan.steps) {
    nodes.emplace_back();
    for (const PlanOrigin& origin : step.origins) nodes.back().push_back(origin.program_node);
  }
  // Lowering adds the node that packs the weight of the last product.
  CHECK((nodes == std::vector<std::vector<int>>{{1}, {2, 3}, {4, -1, 5}}));
  std::set<std::string> names;
  for (const PlanValue& value : plan.values) {
    if (value.program_value < 0) continue;
    const auto id = static_cast<ValueId>(value.program_value);
    const Weight* weight = program.find_weight(id);
    CHECK(value.name == (weight ? weight->name : program.value(id).name));
    names.insert(value.name);
  }
  CHECK((names == std::set<std::string>{"x", "product", "half", "bent", "sums", "last", "second", "unread"}));
  const Plan read = read_plan(pack_plan(plan));
  for (const PlanValue& value : read.values) CHECK(value.program_value == -1);
  std::vector<std::vector<std::string>> chosen;
  for (const PlanStep& step : read.steps) {
    chosen.emplace_back();
    for (const PlanOrigin& origin : step.origins) {
      CHECK(origin.program_node == -1);
      chosen.back().push_back(origin.choice < 0 ? "" : read.choices.at(static_cast<size_t>(origin.choice)).node);
    }
  }
  // Nothing but libtorch computes logcumsumexp, and what lowering adds is not chosen.
  CHECK((chosen == std::vector<std::vector<std::string>>{{"product"}, {"half", "bent"}, {"", "", "last"}}));
}

TEST_CASE("a saved plan runs as before") {
  const Program program = make_mlp();
  const Plan plan = lower_program(program);
  const std::string path = std::string(LISSOME_BINARY_DIR) + "/lower_test.lissome";
  save_prepared(program, plan, path);
  Session session = Session::load(path);
  const std::vector<c10::IValue> inputs = {at::randn({3, 30})};
  check_same(run_session(session, inputs), interpret(program, inputs));
  CHECK(print_plan(session.plan()) == print_plan(plan));
  std::remove(path.c_str());
}

namespace {

at::Tensor random_i8(std::vector<int64_t> sizes) { return at::randint(-127, 128, sizes, at::kChar); }

}  // namespace

TEST_CASE("a convolutional net runs on our own kernels, channels-last inside") {
  check_program(R"(
    input %x: f32[2, 3, 13, 11]
    parameter @c1: f32[20, 3, 3, 3]
    parameter @b1: f32[20]
    parameter @c2: f32[20, 20, 3, 3]
    parameter @dw: f32[20, 1, 3, 3]
    parameter @fc: f32[10, 20]
    %1: f32[2, 20, 13, 11] = lissome::conv_act(%x, @c1, @b1, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
    %2: f32[2, 20, 13, 11] =
      lissome::conv_act(%1, @c2, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu6", residual=%1)
    %3: f32[2, 20, 6, 5] = aten::max_pool2d(%2, [2, 2])
    %4: f32[2, 20, 3, 3] = aten::convolution(%3, @dw, none, [2, 2], [1, 1], [1, 1], false, [0, 0], 20)
    %5: f32[2, 20, 3, 3] = aten::add.Tensor(%4, %4, alpha=2)
    %6: f32[2, 20, 1, 1] = aten::adaptive_avg_pool2d(%5, [1, 1])
    %7: f32[2, 20] = aten::flatten.using_ints(%6, 1)
    %8: f32[2, 10] = aten::linear(%7, @fc)
    %9: f32[2, 180] = aten::reshape(%5, [2, 180])
    return %8, %9, %2
  )",
                {{"c1", at::randn({20, 3, 3, 3})},
                 {"b1", at::randn({20})},
                 {"c2", at::randn({20, 20, 3, 3})},
                 {"dw", at::randn({20, 1, 3, 3})},
                 {"fc", at::randn({10, 20})}},
                {at::randn({2, 3, 13, 11})});
}

TEST_CASE("outputs that lie otherwise are laid out in row order by a step, unless that is not wanted") {
  const Program program = parse_program(R"(
    input %x: f32[batch, 6, 9, 8]
    parameter @w: f32[20, 6, 3, 3]
    %1: f32[batch, 20, 9, 8] = aten::convolution(%x, @w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %2: f32[batch, 8, 20, 9] = aten::permute(%1, [0, 3, 1, 2])
    return %1, %2, %1
  )",
                                        {{"w", at::randn({20, 6, 3, 3})}});
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(program, options);
  for (const PlanOutput& output : plan.outputs) {
    CHECK(plan.value(output.value).storage == Storage::arena);
    CHECK(plan.value(output.value).format == Format::row_major);
  }
  CHECK(plan.outputs[0].value == plan.outputs[2].value);
  Session session(std::make_shared<Plan>(plan));
  for (const int64_t batch : {1, 3}) {
    const std::vector<c10::IValue> inputs = {at::randn({batch, 6, 9, 8})};
    check_same(run_session(session, inputs), interpret(program, inputs));
  }
  options.dense_outputs = false;
  const Plan as_made = lower_program(program, options);
  CHECK(as_made.value(as_made.outputs[0].value).format == Format::channels_last);
  CHECK(as_made.steps.size() == plan.steps.size() - 2);
}

TEST_CASE("channels are shuffled by one copy inside of pixels, and parts are joined where they lie") {
  const Program program = parse_program(R"(
    dim n in 1..8
    input %x: f32[n, 12, 8, 10]
    %a: f32[n, 12, 4, 5] = aten::max_pool2d(%x, [2, 2])
    %split: f32[n, 3, 4, 4, 5] = aten::reshape(%a, [-1, 3, 4, 4, 5])
    %turned: f32[n, 4, 3, 4, 5] = aten::transpose.int(%split, 1, 2)
    %whole: f32[n, 12, 4, 5] = aten::reshape(%turned, [-1, 12, 4, 5])
    %left: f32[n, 6, 4, 5] = aten::slice.Tensor(%whole, 1, 0, 6)
    %right: f32[n, 6, 4, 5] = aten::slice.Tensor(%whole, 1, 6, 12)
    %joined: f32[n, 18, 4, 5] = aten::cat([%right, %left, %right], 1)
    %b: f32[n, 18, 2, 2] = aten::max_pool2d(%joined, [2, 2])
    return %b
  )");
  LowerOptions options;
  options.effort = Effort::fast;
  options.dense_outputs = false;
  const auto plan = std::make_shared<Plan>(lower_program(program, options));
  CHECK(count_steps(*plan, "concat") == 1);
  CHECK(count_steps(*plan, "copy") == 2);  // x with channels last, and the shuffle
  Session session(plan);
  for (const int64_t batch : {1, 3, 8}) {
    const std::vector<c10::IValue> inputs = {at::randn({batch, 12, 8, 10})};
    check_same(run_session(session, inputs), interpret(program, inputs));
  }
}

TEST_CASE("3x3 convolutions go through Winograd where that is forced and possible") {
  const Program program = parse_program(R"(
    dim batch in 1..4
    input %x: f32[batch, 24, 13, 11]
    parameter @c1: f32[40, 24, 3, 3]
    parameter @b1: f32[40]
    parameter @c2: f32[40, 40, 3, 3]
    parameter @c3: f32[24, 40, 3, 3]
    %1: f32[batch, 40, 13, 11] = lissome::conv_act(%x, @c1, @b1, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "silu")
    %2: f32[batch, 40, 13, 11] =
      lissome::conv_act(%1, @c2, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu", residual=%1)
    %3: f32[batch, 24, 6, 5] = aten::convolution(%2, @c3, none, [2, 2], [0, 0], [1, 1], false, [0, 0], 1)
    return %2, %3
  )",
                                        {{"c1", at::randn({40, 24, 3, 3})},
                                         {"b1", at::randn({40})},
                                         {"c2", at::randn({40, 40, 3, 3})},
                                         {"c3", at::randn({24, 40, 3, 3})}});
  for (const char* kernel : {"winograd_f32_4x4", "winograd_f32_2x2"}) {
    LowerOptions options;
    options.effort = Effort::fast;
    options.forced = {{"lissome::conv_act", kernel}};
    const auto plan = std::make_shared<Plan>(lower_program(program, options));
    CHECK(count_steps(*plan, "winograd_f32") == 2);
    CHECK(count_steps(*plan, "conv_f32") == 1);
    CHECK(!plan->needs_reference());
    // 40 outputs fill no panel: what a file leaves out is not counted.
    CHECK(list_larger_forms(*plan).at(1).plain_bytes == 40 * 40 * 9 * 4);
    Session session(plan);
    for (const int64_t batch : {1, 3}) {
      const std::vector<c10::IValue> inputs = {at::randn({batch, 24, 13, 11})};
      const auto seen = run_session(session, inputs), wanted = interpret(program, inputs);
      for (size_t i = 0; i < 2; ++i) {
        const at::Tensor right = wanted[i].toTensor();
        // Other sums than the direct form's: what winograd_f32_test allows the kernel.
        CHECK(seen[i].toTensor().sub(right).abs().max().item().toDouble() <=
              2e-5 * right.abs().max().item().toDouble());
      }
    }
  }
}

TEST_CASE("a transformer block runs on our own kernels, for any batch and sequence") {
  const char* text = R"(
    dim batch in 1..8
    dim seq in 1..64
    input %ids: i64[batch, seq]
    input %mask: f32[batch, 1, 1, seq]
    parameter @table: f32[50, 24]
    parameter @norm.w: f32[24]
    parameter @norm.b: f32[24]
    parameter @qkv: f32[72, 24]
    parameter @qkv.b: f32[72]
    parameter @out: f32[24, 24]
    parameter @up: f32[96, 24]
    parameter @down: f32[24, 96]
    %0: f32[batch, seq, 24] = aten::embedding(@table, %ids)
    %1: f32[batch, seq, 24] = aten::layer_norm(%0, [24], @norm.w, @norm.b)
    %2: f32[batch, seq, 72] = aten::linear(%1, @qkv, @qkv.b)
    %q1: f32[batch, seq, 24] = aten::slice.Tensor(%2, -1, 0, 24)
    %k1: f32[batch, seq, 24] = aten::slice.Tensor(%2, -1, 24, 48)
    %v1: f32[batch, seq, 24] = aten::slice.Tensor(%2, -1, 48, 72)
    %s0: int = aten::sym_size.int(%ids, 0)
    %s1: int = aten::sym_size.int(%ids, 1)
    %q2: f32[batch, seq, 3, 8] = aten::reshape(%q1, [%s0, %s1, 3, 8])
    %k2: f32[batch, seq, 3, 8] = aten::reshape(%k1, [%s0, %s1, 3, 8])
    %v2: f32[batch, seq, 3, 8] = aten::reshape(%v1, [%s0, %s1, 3, 8])
    %q: f32[batch, 3, seq, 8] = aten::transpose.int(%q2, 1, 2)
    %k: f32[batch, 3, seq, 8] = aten::transpose.int(%k2, 1, 2)
    %v: f32[batch, 3, seq, 8] = aten::transpose.int(%v2, 1, 2)
    %m: f32[batch, 3, seq, seq] = aten::expand(%mask, [%s0, 3, %s1, %s1])
    %a: f32[batch, 3, seq, 8] = aten::scaled_dot_product_attention(%q, %k, %v, %m)
    %t: f32[batch, seq, 3, 8] = aten::transpose.int(%a, 1, 2)
    %r: f32[batch, seq, 24] = aten::reshape(%t, [%s0, %s1, 24])
    %o: f32[batch, seq, 24] = lissome::linear_act(%r, @out, none, "none", residual=%0)
    %u: f32[batch, seq, 96] = lissome::linear_act(%o, @up, none, "gelu")
    %d: f32[batch, seq, 24] = aten::linear(%u, @down)
    %y: f32[batch, seq, 24] = aten::add.Tensor(%d, %o)
    %p: f32[batch, 24] = aten::mean.dim(%y, [1])
    %first: f32[batch, 24] = aten::select.int(%y, 1, 0)
    %w: f32[batch, 3, 8, seq] = aten::permute(%a, [0, 1, 3, 2])
    return %y, %p, %first, %w
  )";
  const Weights weights = {{"table", at::randn({50, 24})}, {"norm.w", at::randn({24})},  {"norm.b", at::randn({24})},
                           {"qkv", at::randn({72, 24})},   {"qkv.b", at::randn({72})},   {"out", at::randn({24, 24})},
                           {"up", at::randn({96, 24})},    {"down", at::randn({24, 96})}};
  for (const auto& [batch, seq] : {std::pair<int64_t, int64_t>{1, 1}, {2, 17}, {8, 64}}) {
    // The sizes that views are given as numbers are known without them.
    check_program(text, weights, {at::randint(0, 50, {batch, seq}, at::kLong), at::randn({batch, 1, 1, seq})});
  }
}

TEST_CASE("int8 layers give what their composites give, u8 from layer to layer") {
  check_program(R"(
    input %x: f32[2, 5, 9, 9]
    parameter @w1: i8[12, 5, 3, 3]
    parameter @s1: f32[12]
    parameter @w2: i8[7, 12, 1, 1]
    parameter @s2: f32[7]
    parameter @b: f32[7]
    parameter @w3: i8[6, 112]
    parameter @s3: f32[6]
    %0: u8[2, 5, 9, 9] = lissome::quantize(%x, 0.02, 120)
    %1: u8[2, 12, 9, 9] =
      lissome::conv_int8_u8(%0, 0.02, 120, @w1, @s1, none, [1, 1], [1, 1], [1, 1], 1, "relu", none, 0.05, 0)
    %2: u8[2, 12, 4, 4] = aten::max_pool2d(%1, [2, 2])
    %3: f32[2, 7, 4, 4] = lissome::conv_int8(%2, 0.05, 0, @w2, @s2, @b, [1, 1], [0, 0], [1, 1], 1, "none", none)
    %4: f32[2, 112] = aten::reshape(%3, [2, 112])
    %5: f32[2, 6] = lissome::linear_dynamic_int8(%4, @w3, @s3, none, "none", none)
    %6: f32[2, 12, 9, 9] = lissome::dequantize(%1, 0.05, 0)
    return %5, %6
  )",
                {{"w1", random_i8({12, 5, 3, 3})},
                 {"s1", at::rand({12}).mul(0.01)},
                 {"w2", random_i8({7, 12, 1, 1})},
                 {"s2", at::rand({7}).mul(0.01)},
                 {"b", at::randn({7})},
                 {"w3", random_i8({6, 112})},
                 {"s3", at::rand({6}).mul(0.01)}},
                {at::randn({2, 5, 9, 9})});
}

TEST_CASE("3x3 convolutions in int8 go through Winograd with the bits of the direct form, for any batch and size") {
  const Program program = parse_program(R"(
    dim batch in 1..8
    dim height in 2..64
    input %x: f32[batch, 32, height, 9]
    parameter @w1: i8[64, 32, 3, 3]
    parameter @w2: i8[64, 64, 3, 3]
    parameter @s: f32[64]
    parameter @b: f32[64]
    %0: u8[batch, 32, height, 9] = lissome::quantize(%x, 0.02, 120)
    %1: u8[batch, 64, height, 9] =
      lissome::conv_int8_u8(%0, 0.02, 120, @w1, @s, @b, [1, 1], [1, 1], [1, 1], 1, "relu", none, 0.05, 0)
    %2: u8[batch, 64, height, 9] =
      lissome::conv_int8_u8(%1, 0.05, 0, @w2, @s, none, [1, 1], [1, 1], [1, 1], 1, "relu", %1, 0.05, 0, 0.1, 3)
    %3: f32[batch, 64, height, 9] = lissome::conv_int8(%2, 0.1, 3, @w2, @s, @b, [1, 1], [1, 1], [1, 1], 1, "none", none)
    return %3
  )",
                                        {{"w1", random_i8({64, 32, 3, 3})},
                                         {"w2", random_i8({64, 64, 3, 3})},
                                         {"s", at::rand({64}).mul(0.001)},
                                         {"b", at::randn({64})}});
  const auto lower_with = [&](const char* kernel) {
    LowerOptions options;
    options.effort = Effort::fast;
    options.forced = {{"*", kernel}};
    return std::make_shared<Plan>(lower_program(program, options));
  };
  const auto winograd = lower_with("winograd_u8s8"), direct = lower_with("conv_u8s8");
  CHECK(count_steps(*winograd, "winograd_u8s8") == 3);
  CHECK(count_steps(*direct, "conv_u8s8") == 3);
  // Points of 16 bits where the direct form holds bytes; two steps read w2.
  const std::vector<LargerForm> forms = list_larger_forms(*winograd);
  REQUIRE(forms.size() == 2);
  CHECK(list_larger_forms(*direct).empty());
  CHECK(forms[0].plain_bytes == 64 * 32 * 9);
  CHECK(forms[1].plain_bytes == 64 * 64 * 9);
  CHECK(forms[1].bytes == 64 * 64 * 36 * 2);
  for (const int threads : {1, 2}) {
    const SessionOptions options{.threads = threads};
    Session through_winograd(winograd, options), directly(direct, options);
    for (const int64_t batch : {1, 3}) {
      for (const int64_t height : {2, 13, 64}) {
        const std::vector<c10::IValue> inputs = {at::randn({batch, 32, height, 9})};
        const at::Tensor seen = run_session(through_winograd, inputs)[0].toTensor();
        CHECK(at::equal(seen, run_session(directly, inputs)[0].toTensor()));
        CHECK(at::equal(seen, interpret(program, inputs)[0].toTensor()));
      }
    }
  }
}

TEST_CASE("attention of bytes needs no libtorch and gives what its op says, on every level") {
  const char* text = R"(
    dim n in 1..64
    input %q: f32[2, n, 4, 16]
    input %k: f32[2, 40, 2, 16]
    input %v: f32[2, 40, 2, 24]
    input %added: f32[2, 1, n, 40]
    input %seen: bool[2, 1, 1, 40]
    %qt: f32[2, 4, n, 16] = aten::transpose.int(%q, 1, 2)
    %kt: f32[2, 2, 40, 16] = aten::transpose.int(%k, 1, 2)
    %vt: f32[2, 2, 40, 24] = aten::transpose.int(%v, 1, 2)
    %plain: f32[2, 4, n, 24] = lissome::attention_int8(%qt, %kt, %vt, none, false, 0.25)
    %causal: f32[2, 4, n, 24] = lissome::attention_int8(%qt, %kt, %vt, %added, true, 0.25)
    %chosen: f32[2, 4, n, 24] = lissome::attention_int8(%qt, %kt, %vt, %seen, false, 0.25)
    return %plain, %causal, %chosen
  )";
  const Program program = parse_program(text, {});
  for (const char* level : {"none", "avx2", "avx512", "amx"}) {
    mask_features(level);
    LowerOptions options;
    options.effort = Effort::fast;
    const auto plan = std::make_shared<Plan>(lower_program(program, options));
    CHECK_FALSE(plan->needs_reference());
    CHECK(count_steps(*plan, "attention_u8s8") == 3);
    for (const int64_t length : {1, 7, 50}) {
      const std::vector<c10::IValue> inputs = {at::randn({2, length, 4, 16}), at::randn({2, 40, 2, 16}),
                                               at::randn({2, 40, 2, 24}), at::randn({2, 1, length, 40}),
                                               at::randint(0, 2, {2, 1, 1, 40}, at::kBool)};
      Session session(plan);
      // A weight on the edge between two bytes may become either.
      check_same(run_session(session, inputs), interpret(program, inputs), 1.0 / 255);
    }
  }
  mask_features("amx");
}

TEST_CASE("quantized rows take their smoothing factors themselves") {
  for (const char* dtype : {"f32", "bf16"}) {
    const bool narrow = std::string(dtype) == "bf16";
    const auto cast = [&](const at::Tensor& tensor) { return narrow ? tensor.to(at::kBFloat16) : tensor; };
    const Program program = parse_program(std::regex_replace(std::string(R"(
    dim n in 1..64
    input %x: f32[n, 7, 96]
    parameter @w1: i8[64, 96]
    parameter @s1: f32[64]
    parameter @w2: i8[96, 64]
    parameter @s2: f32[96]
    parameter @g: DTYPE[96]
    parameter @b: DTYPE[96]
    parameter @f: DTYPE[96]
    %0: DTYPE[n, 7, 96] = aten::to.dtype(%x, DTYPE)
    %1: DTYPE[n, 7, 96] = aten::layer_norm(%0, [96], @g, @b)
    %2: DTYPE[n, 7, 96] = aten::mul.Tensor(%1, @f)
    %3: DTYPE[n, 7, 64] = lissome::linear_dynamic_int8(%2, @w1, @s1, none, "relu", none)
    %4: DTYPE[n, 7, 96] = lissome::linear_dynamic_int8(%3, @w2, @s2, none, "none", none)
    %5: DTYPE[n, 7, 96] = aten::add.Tensor(%4, %1)
    %6: DTYPE[n, 7, 96] = aten::layer_norm(%5, [96], @g)
    %7: DTYPE[n, 7, 64] = lissome::linear_dynamic_int8(%6, @w1, @s1, none, "none", none)
    %8: f32[n, 7, 64] = aten::to.dtype(%7, f32)
    return %8
  )"),
                                                             std::regex("DTYPE"), dtype),
                                          {{"w1", random_i8({64, 96})},
                                           {"s1", at::rand({64}).mul(0.01)},
                                           {"w2", random_i8({96, 64})},
                                           {"s2", at::rand({96}).mul(0.01)},
                                           {"g", cast(at::randn({96}))},
                                           {"b", cast(at::randn({96}))},
                                           {"f", cast(at::rand({96}).add(0.5))}});
    LowerOptions options;
    options.effort = Effort::fast;
    const auto plan = std::make_shared<const Plan>(lower_program(program, options));
    CHECK(count_steps(*plan, "quantize_rows") == 3);
    CHECK(count_steps(*plan, "elementwise") == (narrow ? 3 : 0));  // casts and a sum, no product
    Session session(plan, {});
    const at::Tensor x = at::randn({5, 7, 96});
    // In bf16 the composites round once more, which may move a byte.
    check_same(run_session(session, {x}), interpret(program, {x}), narrow ? 0.02 : 1e-5);
  }
}

TEST_CASE("int8 linears that find their scales read and give bf16") {
  check_program(R"(
    input %x: f32[3, 70, 96]
    parameter @w1: i8[64, 96]
    parameter @s1: f32[64]
    parameter @b1: f32[64]
    parameter @w2: i8[96, 64]
    parameter @s2: f32[96]
    %0: bf16[3, 70, 96] = aten::to.dtype(%x, bf16)
    %1: bf16[3, 70, 64] = lissome::linear_dynamic_int8(%0, @w1, @s1, @b1, "none", none)
    %2: bf16[3, 70, 96] = lissome::linear_dynamic_int8(%1, @w2, @s2, none, "relu", %0)
    %3: f32[3, 70, 96] = aten::to.dtype(%2, f32)
    return %3
  )",
                {{"w1", random_i8({64, 96})},
                 {"s1", at::rand({64}).mul(0.01)},
                 {"b1", at::randn({64})},
                 {"w2", random_i8({96, 64})},
                 {"s2", at::rand({96}).mul(0.01)}},
                {at::randn({3, 70, 96})});
}

TEST_CASE("int8 images, residuals and transposed convolutions agree") {
  check_program(R"(
    input %x: f32[2, 3, 9, 12]
    parameter @w1: i8[12, 3, 3, 3]
    parameter @s1: f32[12]
    parameter @w2: i8[12, 12, 3, 3]
    parameter @w3: i8[12, 32, 2, 3]
    parameter @s3: f32[32]
    parameter @b3: f32[32]
    parameter @s4: f32[32]
    parameter @b4: f32[32]
    %0: u8[2, 3, 9, 12] = lissome::quantize(%x, 0.02, 120)
    %1: u8[2, 12, 5, 6] =
      lissome::conv_int8_u8(%0, 0.02, 120, @w1, @s1, none, [2, 2], [1, 1], [1, 1], 1, "relu", none, 0.05, 0)
    %2: u8[2, 12, 5, 6] =
      lissome::conv_int8_u8(%1, 0.05, 0, @w2, @s1, none, [1, 1], [1, 1], [1, 1], 1, "relu", %1, 0.1, 3, 0.05, 0)
    %3: u8[2, 12, 5, 6] = lissome::max_pool2d_u8(%2, [3, 3], [1, 1], [1, 1])
    %4: f32[2, 32, 10, 18] = lissome::conv_transposed_int8(%3, 0.1, 3, @w3, @s3, @b3, "none")
    %5: u8[2, 32, 10, 18] = lissome::conv_transposed_int8_u8(%3, 0.1, 3, @w3, @s3, none, "relu", 0.2, 7)
    %6: f32[2, 32, 10, 18] = lissome::conv_transposed_int8(%3, 0.1, 3, @w3, @s4, @b4, "none")
    return %4, %5, %6
  )",
                {{"w1", random_i8({12, 3, 3, 3})},
                 {"s1", at::rand({12}).mul(0.01)},
                 {"w2", random_i8({12, 12, 3, 3})},
                 {"w3", random_i8({12, 32, 2, 3})},
                 {"s3", at::rand({32}).mul(0.01)},
                 {"b3", at::randn({32})},
                 {"s4", at::rand({32}).mul(0.01)},
                 {"b4", at::randn({32})}},
                {at::randn({2, 3, 9, 12})});
}

TEST_CASE("what stands between layers in int8 agrees: averages and tables") {
  check_program(R"(
    input %x: u8[2, 37, 9, 12]
    input %rows: u8[3, 70]
    parameter @t: u8[256]
    %1: u8[2, 37, 4, 6] = lissome::avg_pool2d_u8(%x, 0.02, 120, [2, 2], [], [0, 0], false, true, none, 0.03, 100)
    %2: u8[2, 37, 5, 6] = lissome::avg_pool2d_u8(%x, 0.02, 7, [3, 3], [2, 2], [1, 1], false, true, none, 0.02, 7)
    %3: u8[2, 37, 5, 6] = lissome::avg_pool2d_u8(%x, 0.02, 255, [3, 3], [2, 2], [1, 1], false, false, none, 0.01, 255)
    %4: u8[2, 37, 5, 6] = lissome::avg_pool2d_u8(%x, 0.02, 0, [2, 2], [2, 2], [0, 0], true, true, none, 0.02, 0)
    %5: u8[2, 37, 1, 1] = lissome::avg_pool2d_u8(%x, 0.02, 120, [9, 12], [9, 12], [0, 0], false, true, 50, 0.05, 120)
    %6: u8[2, 37, 4, 6] = lissome::lut_u8(%1, @t)
    %7: u8[3, 70] = lissome::lut_u8(%rows, @t)
    return %1, %2, %3, %4, %5, %6, %7
  )",
                {{"t", random_i8({256}).to(at::kByte)}},
                {random_i8({2, 37, 9, 12}).to(at::kByte), random_i8({3, 70}).to(at::kByte)});
}

TEST_CASE("int8 depthwise convolutions agree, and all over one dimension") {
  check_program(R"(
    input %x: f32[2, 37, 9, 12]
    input %line: f32[2, 5, 30]
    parameter @w1: i8[37, 1, 3, 3]
    parameter @s1: f32[37]
    parameter @b1: f32[37]
    parameter @w2: i8[37, 1, 5, 5]
    parameter @w3: i8[5, 1, 7]
    parameter @s3: f32[5]
    parameter @w4: i8[40, 5, 3]
    parameter @s4: f32[40]
    parameter @b4: f32[40]
    parameter @w5: i8[40, 40, 1]
    %0: u8[2, 37, 9, 12] = lissome::quantize(%x, 0.02, 120)
    %1: u8[2, 37, 5, 6] =
      lissome::conv_int8_u8(%0, 0.02, 120, @w1, @s1, @b1, [2, 2], [1, 1], [1, 1], 37, "relu6", none, 0.05, 0)
    %2: u8[2, 37, 5, 6] =
      lissome::conv_int8_u8(%1, 0.05, 0, @w2, @s1, none, [1, 1], [2, 2], [1, 1], 37, "relu", %1, 0.05, 0, 0.1, 3)
    %3: f32[2, 37, 5, 6] = lissome::conv_int8(%2, 0.1, 3, @w1, @s1, none, [1, 1], [1, 1], [1, 1], 37, "none", none)
    %4: u8[2, 5, 30] = lissome::quantize(%line, 0.02, 120)
    %5: f32[2, 5, 30] = lissome::conv_int8(%4, 0.02, 120, @w3, @s3, none, [1], [6], [2], 5, "relu", none)
    %6: u8[2, 40, 15] = lissome::conv_int8_u8(%4, 0.02, 120, @w4, @s4, @b4, [2], [1], [1], 1, "relu", none, 0.05, 0)
    %7: f32[2, 40, 15] = lissome::conv_int8(%6, 0.05, 0, @w5, @s4, none, [1], [0], [1], 1, "none", none)
    return %3, %5, %7
  )",
                {{"w1", random_i8({37, 1, 3, 3})},
                 {"s1", at::rand({37}).mul(0.01)},
                 {"b1", at::randn({37})},
                 {"w2", random_i8({37, 1, 5, 5})},
                 {"w3", random_i8({5, 1, 7})},
                 {"s3", at::rand({5}).mul(0.01)},
                 {"w4", random_i8({40, 5, 3})},
                 {"s4", at::rand({40}).mul(0.01)},
                 {"b4", at::randn({40})},
                 {"w5", random_i8({40, 40, 1})}},
                {at::randn({2, 37, 9, 12}), at::randn({2, 5, 30})});
}

TEST_CASE("one weight read in several ways is packed once for each") {
  check_program(R"(
    input %x: f32[2, 2, 6, 6]
    input %wide: f32[2, 4, 6, 6]
    parameter @w: f32[8, 2, 3, 3]
    parameter @q: i8[6, 72]
    parameter @s: f32[6]
    %1: f32[2, 8, 6, 6] = aten::convolution(%x, @w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %2: f32[2, 8, 6, 6] = aten::convolution(%wide, @w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 2)
    %3: f32[2, 72] = aten::flatten.using_ints(%x, 1)
    %4: u8[2, 72] = lissome::quantize(%3, 1.6e-7, 120)
    %5: f32[2, 6] = lissome::linear_int8(%4, 1.6e-7, 120, @q, @s, none, "none", none)
    %6: f32[2, 6] = lissome::linear_int8(%4, 2.4e-7, 120, @q, @s, none, "none", none)
    return %1, %2, %5, %6
  )",
                {{"w", at::randn({8, 2, 3, 3})}, {"q", random_i8({6, 72})}, {"s", at::rand({6}).mul(0.01)}},
                {at::randn({2, 2, 6, 6}), at::randn({2, 4, 6, 6})});
}

TEST_CASE("a batch of none runs through every kernel") {
  check_program(R"(
    dim batch in 0..4
    input %x: f32[batch, 4, 6, 6]
    parameter @w: f32[8, 4, 3, 3]
    parameter @dw: f32[8, 1, 3, 3]
    parameter @fc: f32[9, 8]
    parameter @n: f32[9]
    %1: f32[batch, 8, 6, 6] = lissome::conv_act(%x, @w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
    %2: f32[batch, 8, 6, 6] = aten::convolution(%1, @dw, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 8)
    %3: f32[batch, 8, 3, 3] = aten::max_pool2d(%2, [2, 2])
    %4: f32[batch, 8] = aten::mean.dim(%3, [2, 3])
    %5: f32[batch, 9] = aten::linear(%4, @fc)
    %6: f32[batch, 9] = aten::layer_norm(%5, [9], @n)
    %7: f32[batch, 9] = aten::softmax.int(%6, 1)
    %8: f32[batch, 4, 6, 6] = aten::scaled_dot_product_attention(%x, %x, %x)
    %9: f32[batch, 4, 6, 6] = aten::add.Tensor(%8, %x)
    return %7, %9
  )",
                {{"w", at::randn({8, 4, 3, 3})},
                 {"dw", at::randn({8, 1, 3, 3})},
                 {"fc", at::randn({9, 8})},
                 {"n", at::randn({9})}},
                {at::randn({0, 4, 6, 6})});
}

TEST_CASE("an index out of range is refused and the session goes on") {
  const Program program = parse_program(R"(
    input %ids: i64[n]
    parameter @table: f32[5, 4]
    %1: f32[n, 4] = aten::embedding(@table, %ids)
    return %1
  )",
                                        {{"table", at::randn({5, 4})}});
  LowerOptions options;
  options.effort = Effort::fast;
  Session session(std::make_shared<Plan>(lower_program(program, options)));
  CHECK_THROWS_AS(run_session(session, {at::full({3}, 7, at::kLong)}), Error);
  const std::vector<c10::IValue> good = {at::full({3}, 4, at::kLong)};
  check_same(run_session(session, good), interpret(program, good));
}

TEST_CASE("an unknown kernel is a usage error that names the known ones") {
  LowerOptions options;
  options.forced = {{"*", "linear_f33"}};
  try {
    lower_program(make_mlp(), options);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(error.message().find("linear_f32") != std::string::npos);
  }
}
