// Nodes that have candidates of their own, on our own kernels, at two sizes of what varies.
#include <ATen/core/ivalue.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "lissome/lower/program_check.h"

using namespace lissome;

namespace {

at::Tensor random_ids(std::vector<int64_t> sizes, int64_t low, int64_t high) {
  return at::randint(low, high, sizes, at::kLong);
}

}  // namespace

TEST_CASE("masks are made of comparisons and arithmetic on integers") {
  for (const int64_t length : {1, 7, 40}) {
    check_program(R"(
    dim n in 1..64
    input %ids: i64[2, n]
    input %x: f32[2, n]
    %size: int = aten::sym_size.int(%ids, 1)
    %places: i64[n] = aten::arange(%size)
    %rows: i64[n, 1] = aten::unsqueeze(%places, 1)
    %causal: bool[n, n] = aten::le.Tensor(%places, %rows)
    %used: bool[2, n] = aten::ne.Scalar(%ids, 3)
    %keys: bool[2, 1, n] = aten::unsqueeze(%used, 1)
    %both: bool[2, n, n] = aten::__and__.Tensor(%keys, %causal)
    %not: bool[2, n, n] = aten::logical_not(%both)
    %wide: i64[2, n] = aten::mul.Tensor(%ids, %ids)
    %less: i64[2, n] = aten::sub.Tensor(%wide, 5, alpha=2)
    %cut: i64[2, n] = aten::clamp(%less, -3, 60)
    %kept: i64[2, n] = aten::masked_fill.Scalar(%cut, %used, -1)
    %chosen: f32[2, n] = aten::where.ScalarOther(%used, %x, 0.25)
    %float: f32[2, n] = aten::to.dtype(%ids, f32)
    %turned: f32[2, n] = aten::rsub.Scalar(%float, 1)
    %limited: f32[2, n] = aten::clamp(%x, min=-0.5)
    %power: f32[2, n] = aten::pow.Tensor_Scalar(%x, 3)
    %flags: i64[2, n] = aten::to.dtype(%used, i64)
    %ones: bool[2, n] = aten::ones_like(%used)
    return %not, %kept, %chosen, %turned, %limited, %power, %flags, %ones, %causal
  )",
                  {}, {random_ids({2, length}, -9, 9), at::randn({2, length})});
  }
}

TEST_CASE("elements are taken by index tensors") {
  for (const int64_t length : {1, 5, 33}) {
    check_program(R"(
    dim n in 1..64
    input %x: f32[4, n, 3]
    input %rows: i64[2, 1]
    input %columns: i64[n]
    input %places: i64[4, n, 2]
    %both: f32[2, n, 3] = aten::index.Tensor(%x, [%rows, %columns])
    %middle: f32[4, n, 3] = aten::index.Tensor(%x, [none, %columns])
    %gathered: f32[4, n, 2] = aten::gather(%x, -1, %places)
    %selected: f32[4, n, 3] = aten::index_select(%x, 1, %columns)
    %best: i64[4, 3] = aten::argmax(%x, 1)
    %best_kept: i64[4, n, 1] = aten::argmax(%x, -1, true)
    %last: f32[4, 3] = aten::select.int(%x, 1, -1)
    return %both, %middle, %gathered, %selected, %best, %best_kept, %last
  )",
                  {},
                  {at::randn({4, length, 3}), random_ids({2, 1}, -4, 4), random_ids({length}, 0, length),
                   random_ids({4, length, 2}, 0, 3)});
  }
}

TEST_CASE("reductions, norms and log softmax") {
  for (const int64_t rows : {1, 6}) {
    check_program(R"(
    dim n in 1..64
    input %x: f32[n, 5, 37]
    %logs: f32[n, 5, 37] = aten::log_softmax.int(%x, -1)
    %norm: f32[n, 5, 1] = aten::linalg_vector_norm(%x, 2, [-1], true)
    %across: f32[n, 37] = aten::linalg_vector_norm(%x, 2, [1])
    %large: f32[n, 5] = aten::amax(%x, [2])
    %all: f32[] = aten::sum(%norm)
    %wide: f32[n, 5, 37] = aten::expand_as(%norm, %x)
    %unit: f32[n, 5, 37] = aten::div.Tensor(%x, %wide)
    return %logs, %norm, %across, %large, %all, %unit
  )",
                  {}, {at::randn({rows, 5, 37})});
  }
}

TEST_CASE("what is joined and cut") {
  check_program(R"(
    dim n in 1..16
    input %x: f32[n, 6, 5, 4]
    input %past: f32[n, 2, 5, 4]
    parameter @w: f32[8, 6, 3, 3]
    parameter @nothing: f32[0]
    %c: f32[n, 8, 5, 4] = aten::convolution(%x, @w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %channels: f32[n, 14, 5, 4] = aten::cat([%c, %x], 1)
    %rows: f32[n, 6, 10, 4] = aten::cat([%x, %x], -2)
    %parts: list = aten::split.Tensor(%channels, 9, 1)
    %first: f32[n, 9, 5, 4] = lissome::getitem(%parts, 0)
    %second: f32[n, 5, 5, 4] = lissome::getitem(%parts, 1)
    %slices: list = aten::unbind.int(%rows, 2)
    %one: f32[n, 6, 4] = lissome::getitem(%slices, 3)
    %sum: f32[n, 6, 4] = aten::add.Tensor(%one, %one)
    %whole: f32[n, 2, 5, 4] = aten::cat([@nothing, %past], 1)
    %flat: f32[n, 8, 20] = aten::reshape(%c, [-1, 8, 20])
    %tokens: f32[n, 20, 8] = aten::transpose.int(%flat, 1, 2)
    %orders: f32[n, 5, 4, 8] = aten::permute(%c, [0, 2, 3, 1])
    return %first, %second, %sum, %whole, %rows, %tokens, %orders
  )",
                {{"w", at::randn({8, 6, 3, 3})}, {"nothing", at::randn({0})}},
                {at::randn({3, 6, 5, 4}), at::randn({3, 2, 5, 4})});
}

TEST_CASE("a slice begins where a growing cache ends") {
  for (const int64_t length : {1, 9}) {
    check_program(R"(
    dim n in 1..16
    input %cache: f32[2, n, 4]
    parameter @places: f32[20, 4]
    %at: int = aten::sym_size.int(%cache, 1)
    %next: int = lissome::sym_add(%at, 1)
    %row: f32[1, 4] = aten::slice.Tensor(@places, 0, %at, %next)
    %y: f32[2, n, 4] = aten::add.Tensor(%cache, %row)
    return %y
  )",
                  {{"places", at::randn({20, 4})}}, {at::randn({2, length, 4})});
  }
}

TEST_CASE("transposed convolutions of several groups, depthwise too") {
  check_program(R"(
    dim n in 1..8
    input %x: f32[n, 12, 7, 6]
    input %sound: f32[n, 6, 9]
    parameter @groups: f32[12, 20, 3, 4]
    parameter @taps: f32[12, 1, 3, 4]
    parameter @twice: f32[12, 2, 2, 2]
    parameter @line: f32[6, 1, 5]
    parameter @bias: f32[12]
    parameter @wide: f32[60]
    %1: f32[n, 60, 24, 15] = lissome::conv_act(%x, @groups, @wide, [3, 2], [0, 1], [2, 2], true, [1, 0], 3, "gelu")
    %2: f32[n, 12, 24, 15] = lissome::conv_act(%x, @taps, @bias, [3, 2], [0, 1], [2, 2], true, [1, 0], 12, "relu")
    %3: f32[n, 24, 14, 12] = aten::convolution(%x, @twice, none, [2, 2], [0, 0], [1, 1], true, [0, 0], 12)
    %4: f32[n, 6, 19] = aten::convolution(%sound, @line, none, [2], [1], [1], true, [0], 6)
    return %1, %2, %3, %4
  )",
                {{"groups", at::randn({12, 20, 3, 4})},
                 {"taps", at::randn({12, 1, 3, 4})},
                 {"twice", at::randn({12, 2, 2, 2})},
                 {"line", at::randn({6, 1, 5})},
                 {"bias", at::randn({12})},
                 {"wide", at::randn({60})}},
                {at::randn({3, 12, 7, 6}), at::randn({3, 6, 9})});
}

TEST_CASE("transposed convolutions of any stride, padding and dilation") {
  check_program(R"(
    dim n in 1..8
    input %x: f32[n, 5, 7, 6]
    input %sound: f32[n, 5, 9]
    parameter @even: f32[5, 70, 2, 2]
    parameter @odd: f32[5, 3, 3, 4]
    parameter @line: f32[5, 4, 5]
    parameter @bias: f32[3]
    %1: f32[n, 70, 14, 12] = aten::convolution(%x, @even, none, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)
    %2: f32[n, 3, 24, 15] = aten::convolution(%x, @odd, @bias, [3, 2], [0, 1], [2, 2], true, [1, 0], 1)
    %3: f32[n, 4, 19] = aten::convolution(%sound, @line, none, [2], [1], [1], true, [0], 1)
    %4: f32[n, 3, 24, 15] = aten::relu(%2)
    return %1, %3, %4
  )",
                {{"even", at::randn({5, 70, 2, 2})},
                 {"odd", at::randn({5, 3, 3, 4})},
                 {"line", at::randn({5, 4, 5})},
                 {"bias", at::randn({3})}},
                {at::randn({3, 5, 7, 6}), at::randn({3, 5, 9})});
}

namespace {

// Weights of `layers` layers of both directions, named w0, w1, ...
Weights make_recurrent(int64_t layers, int64_t gates, int64_t inputs, int64_t size) {
  Weights weights;
  for (int64_t i = 0; i < 2 * layers; ++i) {
    const int64_t wide = i < 2 ? inputs : 2 * size;
    const auto add = [&](std::vector<int64_t> sizes) {
      weights.emplace_back("w" + std::to_string(weights.size()), at::randn(sizes).mul(0.3));
    };
    add({gates * size, wide}), add({gates * size, size}), add({gates * size}), add({gates * size});
  }
  return weights;
}

std::string declare_inputs(const Weights& weights) {
  std::string text;
  for (const auto& [name, tensor] : weights) {
    text += "    parameter @" + name + ": f32[" + std::to_string(tensor.size(0)) +
            (tensor.dim() == 2 ? ", " + std::to_string(tensor.size(1)) : "") + "]\n";
  }
  return text;
}

std::string list(const Weights& weights) {
  std::string text;
  for (const auto& [name, tensor] : weights) text += (text.empty() ? "@" : ", @") + name;
  return text;
}

}  // namespace

TEST_CASE("two layers of LSTM and of GRU in both directions, over any batch and length") {
  for (const auto& [batch, steps] : {std::pair<int64_t, int64_t>{1, 1}, {3, 8}}) {
    const Weights lstm = make_recurrent(2, 4, 5, 19);
    check_program(("    dim b in 1..8\n    dim t in 1..64\n    input %x: f32[b, t, 5]\n    input %h: f32[4, b, 19]\n" +
                   declare_inputs(lstm) +
                   "    %y: f32[b, t, 38], %hn: f32[4, b, 19], %cn: f32[4, b, 19] = aten::lstm.input(%x, [%h, %h], [" +
                   list(lstm) + "], true, 2, 0.0, false, true, true)\n    return %y, %hn, %cn\n")
                      .c_str(),
                  lstm, {at::randn({batch, steps, 5}), at::randn({4, batch, 19})});
    const Weights gru = make_recurrent(2, 3, 5, 19);
    check_program(("    dim b in 1..8\n    dim t in 1..64\n    input %x: f32[t, b, 5]\n    input %h: f32[4, b, 19]\n" +
                   declare_inputs(gru) + "    %y: f32[t, b, 38], %hn: f32[4, b, 19] = aten::gru.input(%x, %h, [" +
                   list(gru) + "], true, 2, 0.0, false, true, false)\n    return %y, %hn\n")
                      .c_str(),
                  gru, {at::randn({steps, batch, 5}), at::randn({4, batch, 19})});
  }
}

TEST_CASE("layers of LSTM and GRU whose inputs are multiplied, with weights of f32, bf16 and s8") {
  struct Form {
    const char *dtype, *scales;
    int64_t steps;  // with fewer bits than f32, what a first step rounds decides what the next ones read
    std::function<at::Tensor(std::vector<int64_t>)> make;
  };
  const Form forms[] = {
      {"f32", "none", 8, [](const std::vector<int64_t>& sizes) { return at::randn(sizes).mul(0.3); }},
      {"bf16", "none", 1, [](const std::vector<int64_t>& sizes) { return at::randn(sizes).to(at::kBFloat16); }},
      {"i8", "@s", 1, [](const std::vector<int64_t>& sizes) { return at::randint(-127, 128, sizes, at::kChar); }}};
  for (const Form& form : forms) {
    for (const int64_t batch : {1, 3}) {
      for (const auto& [op, gates] : {std::pair<std::string, int64_t>{"lstm", 4}, {"gru", 3}}) {
        const std::string wide = std::to_string(gates * 19), both = std::to_string(2 * gates * 19);
        Weights weights = {{"w", form.make({2, gates * 19, 19})}};
        std::string text = "    dim b in 1..8\n    dim t in 1..64\n    input %x: f32[t, b, " + both +
                           "]\n    input %h: f32[2, b, 19]\n    parameter @w: " + form.dtype + "[2, " + wide +
                           ", 19]\n";
        if (form.scales[0] == '@') {
          text += "    parameter @s: f32[2, " + wide + "]\n";
          weights.emplace_back("s", at::rand({2, gates * 19}).mul(0.01));
        }
        if (gates == 3) {
          text += "    parameter @b: f32[" + both + "]\n";
          weights.emplace_back("b", at::randn({2 * gates * 19}));
        }
        text += "    %y: f32[t, b, 38], %hn: f32[2, b, 19]";
        text += gates == 4 ? ", %cn: f32[2, b, 19] = lissome::lstm_layer(%x, @w, " + std::string(form.scales) +
                                 ", %h, %h, false)\n    return %y, %hn, %cn\n"
                           : " = lissome::gru_layer(%x, @w, " + std::string(form.scales) +
                                 ", @b, %h, false)\n    return %y, %hn\n";
        check_program(text.c_str(), weights,
                      {at::randn({form.steps, batch, 2 * gates * 19}), at::randn({2, batch, 19})});
      }
    }
  }
}

TEST_CASE("chains of element-wise nodes become one step") {
  const char* text = R"(
    dim n in 1..64
    input %x: f32[2, n, 8]
    input %row: f32[8]
    input %used: bool[2, n, 1]
    %shifted: f32[2, n, 8] = aten::add.Tensor(%x, %row)
    %cube: f32[2, n, 8] = aten::mul.Tensor(%shifted, %shifted)
    %scaled: f32[2, n, 8] = aten::mul.Tensor(%cube, 0.05)
    %bent: f32[2, n, 8] = aten::tanh(%scaled)
    %negative: bool[2, n, 8] = aten::lt.Scalar(%bent, 0.25)
    %kept: f32[2, n, 8] = aten::masked_fill.Scalar(%bent, %negative, -1.5)
    %masked: f32[2, n, 8] = aten::where.ScalarOther(%used, %kept, 2)
    %whole: i64[2, n, 8] = aten::to.dtype(%masked, i64)
    %twice: i64[2, n, 8] = aten::add.Tensor(%whole, %whole)
    %less: i64[2, n, 8] = aten::sub.Tensor(%twice, 3)
    return %masked, %less
  )";
  for (const int64_t length : {1, 7, 40}) {
    check_program(text, {}, {at::randn({2, length, 8}), at::randn({8}), at::rand({2, length, 1}).gt(0.5)});
  }
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(parse_program(text, {}), options);
  // %bent is read by two, %masked leaves; whole numbers work on other registers.
  std::vector<size_t> nodes;
  for (const PlanStep& step : plan.steps) nodes.push_back(step.origins.size());
  CHECK(nodes == std::vector<size_t>{4, 3, 1, 2});
}

TEST_CASE("what a kernel cannot hold stays apart") {
  // Nine operands and more instructions than one step may have.
  std::string text = "input %x0: f32[4, 33]\n";
  std::vector<c10::IValue> inputs = {at::randn({4, 33})};
  for (int i = 1; i < 9; ++i) {
    text += "input %x" + std::to_string(i) + ": f32[4, 33]\n";
    inputs.emplace_back(at::randn({4, 33}));
  }
  std::string last = "x0";
  for (int i = 1; i < 9; ++i) {
    const std::string number = std::to_string(i);
    text += "%e" + number + ": f32[4, 33] = aten::exp(%x" + number + ")\n";
    text += "%m" + number + ": f32[4, 33] = aten::mul.Tensor(%" + last + ", %e" + number + ")\n";
    text += "%s" + number + ": f32[4, 33] = aten::sigmoid(%m" + number + ")\n";
    last = "s" + number;
  }
  text += "return %" + last + "\n";
  check_program(text.c_str(), {}, inputs);
}

TEST_CASE("more activations and arithmetic") {
  check_program(R"(
    input %x: f32[3, 50]
    %leaky: f32[3, 50] = aten::leaky_relu(%x, 0.1)
    %elu: f32[3, 50] = aten::elu(%x, 0.7)
    %positive: f32[3, 50] = aten::abs(%x)
    %log: f32[3, 50] = aten::log(%positive)
    %round: f32[3, 50] = aten::round(%x)
    %plus: f32[3, 50] = aten::add.Scalar(%x, 2, 3)
    %minus: f32[3, 50] = aten::sub.Scalar(%plus, 2, 0.5)
    %times: f32[3, 50] = aten::mul.Scalar(%minus, 1.5)
    %over: f32[3, 50] = aten::div.Scalar(%times, 7)
    return %leaky, %elu, %log, %round, %over
  )",
                {}, {at::randn({3, 50}).mul(4)});
}

TEST_CASE("norms over the root of mean squares and over groups") {
  check_program(R"(
    input %x: f32[5, 48]
    input %image: f32[2, 12, 7, 5]
    input %line: f32[2, 12, 9]
    parameter @w: f32[48]
    parameter @c: f32[12]
    %plain: f32[5, 48] = aten::rms_norm(%x, [48])
    %weighted: f32[5, 48] = aten::rms_norm(%x, [48], @w, 0.001)
    %groups: f32[2, 12, 7, 5] = aten::group_norm(%image, 3, @c, @c)
    %bare: f32[2, 12, 9] = aten::group_norm(%line, 4)
    return %plain, %weighted, %groups, %bare
  )",
                {{"w", at::randn({48})}, {"c", at::randn({12})}},
                {at::randn({5, 48}), at::randn({2, 12, 7, 5}).add(3), at::randn({2, 12, 9})});
}

TEST_CASE("norms add what comes in and activate what goes out") {
  const char* text = R"(
    dim n in 1..9
    input %x: f32[n, 5, 48]
    input %more: f32[n, 5, 48]
    input %image: f32[2, 12, 7, 5]
    parameter @w: f32[48]
    %sum: f32[n, 5, 48] = aten::add.Tensor(%x, %more)
    %norm: f32[n, 5, 48] = aten::layer_norm(%sum, [48], @w)
    %again: f32[n, 5, 48] = aten::add.Tensor(%norm, %sum)
    %last: f32[n, 5, 48] = aten::rms_norm(%again, [48], @w, 0.001)
    %early: f32[n, 5, 48] = aten::add.Tensor(%last, %x)
    %read: f32[n, 5, 48] = aten::exp(%early)
    %late: f32[n, 5, 48] = aten::layer_norm(%early, [48])
    %group: f32[2, 12, 7, 5] = aten::group_norm(%image, 3)
    %bent: f32[2, 12, 7, 5] = aten::silu(%group)
    %groups: f32[2, 12, 7, 5] = aten::group_norm(%bent, 4)
    %cut: f32[2, 12, 7, 5] = aten::relu(%groups)
    return %last, %read, %late, %cut
  )";
  const Weights weights = {{"w", at::randn({48})}};
  check_program(text, weights, {at::randn({3, 5, 48}), at::randn({3, 5, 48}), at::randn({2, 12, 7, 5})});
  LowerOptions options;
  options.effort = Effort::fast;
  const Plan plan = lower_program(parse_program(text, weights), options);
  const auto count = [&](const char* kernel) {
    return std::count_if(plan.steps.begin(), plan.steps.end(),
                         [&](const PlanStep& step) { return step.kernel == kernel; });
  };
  CHECK(count("elementwise") == 2);  // %early, which is read before its norm, and %read
  CHECK(count("layer_norm") == 3);
  CHECK(count("group_norm") == 2);
}

TEST_CASE("images at other sizes") {
  check_program(R"(
    input %x: f32[2, 5, 6, 4]
    %near: f32[2, 5, 12, 8] = aten::upsample_nearest2d.vec(%x, none, [2.0, 2.0])
    %odd: f32[2, 5, 7, 9] = aten::upsample_nearest2d.vec(%x, [7, 9], none)
    %smooth: f32[2, 5, 15, 10] = aten::upsample_bilinear2d.vec(%x, none, false, [2.6, 2.5])
    %corners: f32[2, 5, 11, 3] = aten::upsample_bilinear2d(%x, [11, 3], true)
    return %near, %odd, %smooth, %corners
  )",
                {}, {at::randn({2, 5, 6, 4})});
}

TEST_CASE("padding and running sums") {
  check_program(R"(
    input %x: f32[2, 5, 6, 4]
    input %ids: i64[3, 8]
    %around: f32[2, 5, 9, 7] = aten::pad(%x, [1, 2, 3, 0])
    %filled: f32[2, 5, 6, 6] = aten::constant_pad_nd(%x, [3, -1], 1.5)
    %wide: i64[3, 10] = aten::pad(%ids, [2, 0], "constant", -7.0)
    %sums: i64[3, 10] = aten::cumsum(%wide, 1)
    %down: f32[2, 5, 6, 4] = aten::cumsum(%x, -2)
    return %around, %filled, %sums, %down
  )",
                {}, {at::randn({2, 5, 6, 4}), random_ids({3, 8}, -9, 9)});
}

TEST_CASE("products of two computed matrices") {
  for (const int64_t length : {1, 17}) {
    check_program(R"(
      dim n in 1..64
      input %a: f32[2, 3, n, 10]
      input %b: f32[2, 3, n, 10]
      input %c: f32[10, 70]
      %turned: f32[2, 3, 10, n] = aten::transpose.int(%b, 2, 3)
      %scores: f32[2, 3, n, n] = aten::matmul(%a, %turned)
      %mixed: f32[2, 3, n, 10] = aten::matmul(%scores, %b)
      %wide: f32[2, 3, n, 70] = aten::matmul(%mixed, %c)
      %first: f32[3, n, 10] = aten::select.int(%a, 0, 1)
      %second: f32[3, n, 10] = aten::select.int(%b, 0, 1)
      %second_turned: f32[3, 10, n] = aten::transpose.int(%second, 1, 2)
      %batched: f32[3, n, n] = aten::bmm(%first, %second_turned)
      return %wide, %batched
    )",
                  {}, {at::randn({2, 3, length, 10}), at::randn({2, 3, length, 10}), at::randn({10, 70})});
  }
}

TEST_CASE("activations and functions without an instruction of their own are composed") {
  const at::Tensor x = at::randn({3, 5, 4, 6}).mul(4);
  at::Tensor special = at::randn({3, 5, 4, 6}).mul(1e-4);
  special.flatten()[1] = 30, special.flatten()[2] = -30, special.flatten()[3] = 0, special.flatten()[4] = 60;
  for (const at::Tensor& input : {x, special}) {
    check_program(R"(
    input %x: f32[3, 5, 4, 6]
    parameter @one: f32[1]
    parameter @slopes: f32[5]
    %1: f32[3, 5, 4, 6] = aten::relu6(%x)
    %2: f32[3, 5, 4, 6] = aten::mish(%x)
    %3: f32[3, 5, 4, 6] = aten::softplus(%x, 2, 5)
    %4: f32[3, 5, 4, 6] = aten::softplus(%x)
    %5: f32[3, 5, 4, 6] = aten::log_sigmoid(%x)
    %6: f32[3, 5, 4, 6] = aten::selu(%x)
    %7: f32[3, 5, 4, 6] = aten::celu(%x, 1.3)
    %8: f32[3, 5, 4, 6] = aten::elu(%x, 0.7, 1.5)
    %9: f32[3, 5, 4, 6] = aten::prelu(%x, @slopes)
    %10: f32[3, 5, 4, 6] = aten::prelu(%x, @one)
    %11: f32[3, 5, 4, 6] = aten::hardshrink(%x, 0.6)
    %12: f32[3, 5, 4, 6] = aten::softshrink(%x, 0.7)
    %13: f32[3, 5, 4, 6] = aten::threshold(%x, 0.1, 2)
    %14: f32[3, 5, 4, 6] = aten::expm1(%12)
    %15: f32[3, 5, 4, 6] = aten::ceil(%x)
    %16: f32[3, 5, 4, 6] = aten::trunc(%x)
    %17: f32[3, 5, 4, 6] = aten::sign(%x)
    %18: bool[3, 5, 4, 6] = aten::isnan(%x)
    %19: f32[3, 5, 4, 6] = aten::lerp.Scalar(%x, %1, 0.3)
    %20: f32[3, 5, 4, 6] = aten::addcmul(%x, %1, %11, value=0.5)
    %21: f32[3, 5, 4, 6] = aten::addcdiv(%1, %x, %4)
    %22: f32[3, 5, 4, 6] = aten::abs(%x)
    %23: f32[3, 5, 4, 6] = aten::log1p(%22)
    %24: f32[3, 5, 4, 6] = aten::mul.Tensor(%x, 0.01)
    %25: f32[3, 5, 4, 6] = aten::expm1(%24)
    %26: f32[3, 5, 4, 6] = aten::log1p(%24)
    return %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %13, %14, %15, %16, %17, %18, %19, %20, %21, %23, %25, %26
  )",
                  {{"one", at::randn({1})}, {"slopes", at::randn({5})}}, {input});
  }
}

TEST_CASE("shuffled pixels, gated halves and instance norms") {
  check_program(R"(
    dim n in 1..8
    input %x: f32[n, 12, 4, 6]
    parameter @w: f32[12, 12, 1, 1]
    parameter @g: f32[12]
    parameter @b: f32[12]
    %c: f32[n, 12, 4, 6] = aten::convolution(%x, @w, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    %1: f32[n, 3, 8, 12] = aten::pixel_shuffle(%c, 2)
    %2: f32[n, 12, 4, 6] = aten::pixel_unshuffle(%1, 2)
    %3: f32[n, 6, 4, 6] = aten::glu(%c, 1)
    %4: f32[n, 12, 4, 3] = aten::glu(%2, -1)
    %5: f32[n, 12, 4, 6] = aten::instance_norm(%c, @g, @b, none, none, true, 0.1, 1e-05, false)
    %6: f32[n, 12, 4, 6] = aten::instance_norm(%2, none, none, none, none, true, 0.1, 1e-05, false)
    return %1, %2, %3, %4, %5, %6
  )",
                {{"w", at::randn({12, 12, 1, 1})}, {"g", at::randn({12})}, {"b", at::randn({12})}},
                {at::randn({3, 12, 4, 6})});
}
