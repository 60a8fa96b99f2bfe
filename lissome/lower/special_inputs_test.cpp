// Every kernel on every level of instruction sets against interpret(), at random sizes (1, odd, prime, large) and on
// inputs that arithmetic treats apart: zeros, numbers below the smallest normal one, infinities, NaN. interpret() runs
// in f64, since oneDNN, which ATen hands f32 and bf16 to, gives NaN for gelu(infinity) and for sums with an infinity.
#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "lissome/lower.h"
#include "lissome/lower/program_check.h"

using namespace lissome;

namespace {

struct SweepCase {
  // `{n}` and the like stand for sizes, `{n/2}` for half of one, rounded up, `{2n}` for twice one.
  const char* text;
  std::vector<ForcedKernel> forced = {};
  double tolerance = 1e-5;  // of the largest element
  // Kernels that transform tiles of inputs: what is not finite reaches all outputs of its tiles (winograd_f32.h).
  bool spreads = false;
  bool sees_denormals = false;  // they are numbers here
  // The same in f64, where the text itself is none: ATen's flash kernel drops NaN among few keys.
  const char* exact = nullptr;
};

constexpr double kSmallest = std::numeric_limits<float>::min();
constexpr const char* kLevels[] = {"none", "avx2", "avx512", "vnni", "bf16", "amx"};
constexpr int64_t kSizes[] = {1, 2, 3, 7, 16, 17, 31, 64, 97};

using Sizes = std::map<std::string, int64_t>;

std::string put_sizes(const std::string& text, std::mt19937& random, Sizes& sizes) {
  std::string result;
  size_t at = 0;
  const std::regex placeholder(R"(\{(2?)([a-z])(/2)?\})");
  for (std::sregex_iterator found(text.begin(), text.end(), placeholder), end; found != end; ++found) {
    const std::smatch& match = *found;
    int64_t& size = sizes[match[2].str()];
    if (size == 0) size = kSizes[random() % std::size(kSizes)];
    result += text.substr(at, static_cast<size_t>(match.position()) - at);
    result += std::to_string(match[1].length() != 0 ? 2 * size : match[3].matched ? (size + 1) / 2 : size);
    at = static_cast<size_t>(match.position() + match.length());
  }
  return result + text.substr(at);
}

at::Tensor make_random(const std::string& dtype, const std::string& sizes) {
  std::vector<int64_t> numbers;
  const std::regex number("[0-9]+");
  for (std::sregex_iterator found(sizes.begin(), sizes.end(), number), end; found != end; ++found)
    numbers.push_back(std::stoll(found->str()));
  return at::randn(numbers).to(dtype == "bf16" ? at::kBFloat16 : at::kFloat);
}

// What the text declares by `word` ("input %" or "parameter @"), with random numbers.
Weights declare(const std::string& text, const std::string& word) {
  Weights declared;
  const std::regex line(word + R"(([a-z0-9]+): (f32|bf16)\[([^\]]*)\])");
  for (std::sregex_iterator found(text.begin(), text.end(), line), end; found != end; ++found)
    declared.emplace_back((*found)[1].str(), make_random((*found)[2].str(), (*found)[3].str()));
  return declared;
}

enum class Special { none, zeros, denormals, infinity, nan, all };

at::Tensor make_special(const at::Tensor& plain, Special special, std::mt19937& random) {
  if (special == Special::none) return plain;
  if (special == Special::zeros) return at::zeros(plain.sizes(), plain.options());
  if (special == Special::denormals) return plain.mul(1e-39);
  at::Tensor mixed = plain.clone();
  const at::Tensor flat = mixed.view({-1});
  const auto put = [&](double value) { flat.select(0, static_cast<int64_t>(random()) % flat.numel()).fill_(value); };
  if (special == Special::all) put(1e-40), put(0), put(-0.0), put(-INFINITY);
  if (special != Special::nan) put(INFINITY);
  if (special != Special::infinity) put(NAN);
  return mixed;
}

// The same NaN and infinities, or closer than `tolerance` of the largest finite element; what is below the smallest
// normal number may have been flushed.
int64_t count_wrong(const at::Tensor& seen_tensor, const at::Tensor& wanted_tensor, const SweepCase& of) {
  const at::Tensor seen = seen_tensor.to(at::kDouble).contiguous(), wanted = wanted_tensor.to(at::kDouble).contiguous();
  const double *left = seen.const_data_ptr<double>(), *right = wanted.const_data_ptr<double>();
  double largest = 0;
  for (int64_t i = 0; i < wanted.numel(); ++i)
    if (std::isfinite(right[i])) largest = std::max(largest, std::fabs(right[i]));
  int64_t wrong = 0;
  for (int64_t i = 0; i < wanted.numel(); ++i) {
    const bool equal = std::isnan(right[i])   ? std::isnan(left[i])
                       : std::isinf(right[i]) ? left[i] == right[i]
                                              : std::fabs(left[i] - right[i]) <= of.tolerance * largest + kSmallest;
    wrong += !equal && !(of.spreads && !std::isfinite(left[i]));
  }
  return wrong;
}

// What is below the smallest normal number counts as zero before it is read, as kernels of ours read it.
at::Tensor flush(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kDouble);
  return wide.abs().lt(kSmallest).logical_not().mul(wide);  // a zero keeps its sign
}

Program parse_in_f64(const std::string& text, const Weights& weights) {
  Weights wide;
  for (const auto& [name, weight] : weights) wide.emplace_back(name, weight.to(at::kDouble));
  return parse_program(std::regex_replace(text, std::regex(R"(\b(b?f)(16|32)\[)"), "f64["), wide);
}

void check_inputs(const Program& exact, const std::vector<std::unique_ptr<Session>>& sessions,
                  const std::vector<c10::IValue>& inputs, const SweepCase& of) {
  std::vector<c10::IValue> wide;
  for (const c10::IValue& input : inputs)
    wide.emplace_back(of.sees_denormals ? input.toTensor().to(at::kDouble) : flush(input.toTensor()));
  const auto wanted = interpret(exact, wide);
  for (size_t s = 0; s < sessions.size(); ++s) {
    CAPTURE(std::string(kLevels[s]));
    mask_features(kLevels[s]);  // kernels are looked up when sizes are first seen
    const auto seen = run_session(*sessions[s], inputs);
    REQUIRE(seen.size() == wanted.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      CAPTURE(i);
      REQUIRE((seen[i].toTensor().sizes() == wanted[i].toTensor().sizes()));
      CHECK(count_wrong(seen[i].toTensor(), wanted[i].toTensor(), of) == 0);
    }
  }
}

std::vector<std::unique_ptr<Session>> lower_on_all_levels(const Program& program, const SweepCase& of) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (const char* level : kLevels) {
    mask_features(level);
    LowerOptions options;
    options.effort = Effort::fast;
    options.forced = of.forced;
    options.threads = 2;
    const auto plan = std::make_shared<Plan>(lower_program(program, options));
    CAPTURE(std::string(level));
    CAPTURE(list_refusals(*plan));
    CHECK(!plan->needs_reference());
    SessionOptions session_options;
    session_options.threads = 2;
    sessions.push_back(std::make_unique<Session>(plan, session_options));
  }
  mask_features("amx");
  return sessions;
}

void check_sizes(const SweepCase& of, std::mt19937& random) {
  Sizes sizes;
  const std::string text = put_sizes(of.text, random, sizes);
  CAPTURE(text);
  const Weights weights = declare(text, "parameter @");
  const Program program = parse_program(text, weights),
                exact = parse_in_f64(of.exact == nullptr ? text : put_sizes(of.exact, random, sizes), weights);
  const auto sessions = lower_on_all_levels(program, of);
  for (const Special special :
       {Special::none, Special::zeros, Special::denormals, Special::infinity, Special::nan, Special::all}) {
    CAPTURE(static_cast<int>(special));
    std::vector<c10::IValue> inputs;
    for (const auto& [name, plain] : declare(text, "input %"))
      inputs.emplace_back(make_special(plain, special, random));
    check_inputs(exact, sessions, inputs, of);
  }
}

void sweep(const SweepCase& of) {
  set_cache_folder("none");
  std::mt19937 random(7);
  for (int draw = 0; draw < 6; ++draw) {
    CAPTURE(draw);
    check_sizes(of, random);
  }
}

constexpr double kBf16 = 1.0 / 128;  // one rounding of the result, one of what a fused node keeps in f32

}  // namespace

TEST_CASE("products on special inputs") {
  sweep({.text = R"(
    input %x: f32[{n}, {k}]
    input %a: f32[2, {m}, {k}]
    input %b: f32[2, {k}, {o}]
    parameter @w: f32[{o}, {k}]
    parameter @c: f32[{o}]
    %y: f32[{n}, {o}] = aten::linear(%x, @w, @c)
    %bare: f32[{n}, {o}] = aten::linear(%x, @w)
    %z: f32[2, {m}, {o}] = aten::matmul(%a, %b)
    return %y, %bare, %z
  )"});
  sweep({.text = R"(
    input %x: bf16[{n}, {k}]
    input %a: bf16[2, {m}, {k}]
    input %b: bf16[2, {k}, {o}]
    parameter @w: bf16[{o}, {k}]
    parameter @c: bf16[{o}]
    %y: bf16[{n}, {o}] = aten::linear(%x, @w, @c)
    %z: bf16[2, {m}, {o}] = aten::matmul(%a, %b)
    return %y, %z
  )",
         .tolerance = kBf16});
}

TEST_CASE("composed activations and functions on special inputs") {
  sweep({.text = R"(
    input %x: f32[{n}, {k}]
    input %z: f32[{n}, {k}]
    parameter @slopes: f32[{k}]
    %1: f32[{n}, {k}] = aten::relu6(%x)
    %2: f32[{n}, {k}] = aten::mish(%x)
    %3: f32[{n}, {k}] = aten::softplus(%x, 2, 5)
    %4: f32[{n}, {k}] = aten::log_sigmoid(%x)
    %5: f32[{n}, {k}] = aten::selu(%x)
    %6: f32[{n}, {k}] = aten::celu(%x, 1.3)
    %7: f32[{n}, {k}] = aten::prelu(%x, @slopes)
    %8: f32[{n}, {k}] = aten::hardshrink(%x, 0.6)
    %9: f32[{n}, {k}] = aten::softshrink(%x, 0.7)
    %10: f32[{n}, {k}] = aten::threshold(%x, 0.1, 2)
    %11: f32[{n}, {k}] = aten::expm1(%x)
    %12: f32[{n}, {k}] = aten::ceil(%x)
    %13: f32[{n}, {k}] = aten::trunc(%x)
    %14: bool[{n}, {k}] = aten::isnan(%x)
    %15: f32[{n}, {k}] = aten::lerp.Scalar(%x, %z, 0.3)
    %16: f32[{n}, {k}] = aten::addcmul(%x, %z, %z, value=0.5)
    %17: f32[{n}, {k}] = aten::abs(%x)
    %18: f32[{n}, {k}] = aten::log1p(%17)
    return %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %18
  )"});
}

TEST_CASE("convolutions on special inputs") {
  sweep({.text = R"(
    input %x: f32[2, {c}, {h}, {w}]
    input %line: f32[2, {c}, {w}]
    parameter @a: f32[{o}, {c}, 3, 3]
    parameter @s: f32[{o}, {c}, 3, 3]
    parameter @p: f32[{o}, {c}, 1, 1]
    parameter @d: f32[{c}, 1, 3, 3]
    parameter @t: f32[{c}, {o}, 2, 2]
    parameter @l: f32[{o}, {c}, 5]
    parameter @bias: f32[{o}]
    %same: f32[2, {o}, {h}, {w}] = aten::convolution(%x, @a, @bias, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %wide: f32[2, {o}, {h}, {w}] = aten::convolution(%x, @a, none, [1, 1], [2, 2], [2, 2], false, [0, 0], 1)
    %half: f32[2, {o}, {h/2}, {w/2}] = aten::convolution(%x, @s, none, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)
    %point: f32[2, {o}, {h}, {w}] = aten::convolution(%x, @p, @bias, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    %deep: f32[2, {c}, {h}, {w}] = aten::convolution(%x, @d, none, [1, 1], [1, 1], [1, 1], false, [0, 0], {c})
    %up: f32[2, {o}, {2h}, {2w}] = aten::convolution(%x, @t, @bias, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)
    %flat: f32[2, {o}, {w}] = aten::convolution(%line, @l, none, [1], [2], [1], false, [0], 1)
    return %same, %wide, %half, %point, %deep, %up, %flat
  )"});
  sweep({.text = R"(
    input %x: bf16[2, {c}, {h}, {w}]
    parameter @a: bf16[{o}, {c}, 3, 3]
    parameter @p: bf16[{o}, {c}, 1, 1]
    parameter @bias: bf16[{o}]
    %same: bf16[2, {o}, {h}, {w}] = aten::convolution(%x, @a, @bias, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %half: bf16[2, {o}, {h/2}, {w/2}] = aten::convolution(%x, @a, none, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)
    %point: bf16[2, {o}, {h}, {w}] = aten::convolution(%x, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    return %same, %half, %point
  )",
         .tolerance = kBf16});
}

TEST_CASE("depthwise convolutions joined with the 1x1 behind them on special inputs") {
  sweep({.text = R"(
    input %x: f32[2, {2c}, {h}, {w}]
    parameter @d: f32[{2c}, 1, 3, 3]
    parameter @b: f32[{2c}]
    parameter @p: f32[{o}, {2c}, 1, 1]
    parameter @bias: f32[{o}]
    %deep: f32[2, {2c}, {h/2}, {w/2}] = aten::convolution(%x, @d, @b, [2, 2], [1, 1], [1, 1], false, [0, 0], {2c})
    %point: f32[2, {o}, {h/2}, {w/2}] = aten::convolution(%deep, @p, @bias, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
    return %point
  )",
         .forced = {{"*", "separable_f32"}}});
}

TEST_CASE("convolutions through Winograd on special inputs") {
  for (const char* tile : {"2x2", "4x4"}) {
    for (const std::string dtype : {"f32", "bf16"}) {
      CAPTURE(std::string(tile));
      const std::string text = std::regex_replace(std::string(R"(
    input %x: DTYPE[2, {c}, {h}, {w}]
    parameter @a: DTYPE[{o}, {c}, 3, 3]
    parameter @bias: DTYPE[{o}]
    %same: DTYPE[2, {o}, {h}, {w}] = aten::convolution(%x, @a, @bias, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    return %same
  )"),
                                                  std::regex("DTYPE"), dtype);
      sweep({.text = text.c_str(),
             .forced = {{"*", "winograd_" + dtype + "_" + tile}},
             .tolerance = dtype == "f32" ? 1e-4 : kBf16,
             .spreads = true});
    }
  }
}

TEST_CASE("attention on special inputs") {
  for (const std::string dtype : {"f32", "bf16"}) {
    const std::string text = std::regex_replace(std::string(R"(
    input %q: DTYPE[1, 2, {n}, {s}]
    input %k: DTYPE[1, 2, {m}, {s}]
    input %v: DTYPE[1, 2, {m}, {s}]
    %y: DTYPE[1, 2, {n}, {s}] = aten::scaled_dot_product_attention(%q, %k, %v, none, 0.0, false, scale=0.25)
    return %y
  )"),
                                                std::regex("DTYPE"), dtype);
    sweep({.text = text.c_str(), .tolerance = dtype == "f32" ? 1e-5 : kBf16, .exact = R"(
    input %q: f64[1, 2, {n}, {s}]
    input %k: f64[1, 2, {m}, {s}]
    input %v: f64[1, 2, {m}, {s}]
    %turned: f64[1, 2, {s}, {m}] = aten::transpose.int(%k, -2, -1)
    %scores: f64[1, 2, {n}, {m}] = aten::matmul(%q, %turned)
    %scaled: f64[1, 2, {n}, {m}] = aten::mul.Scalar(%scores, 0.25)
    %weights: f64[1, 2, {n}, {m}] = aten::softmax.int(%scaled, -1)
    %y: f64[1, 2, {n}, {s}] = aten::matmul(%weights, %v)
    return %y
  )"});
  }
}

TEST_CASE("norms and softmax on special inputs") {
  sweep({.text = R"(
    input %x: f32[{n}, {k}]
    input %image: f32[2, {2c}, {h}, {w}]
    parameter @w: f32[{k}]
    parameter @b: f32[{k}]
    parameter @c: f32[{2c}]
    %layer: f32[{n}, {k}] = aten::layer_norm(%x, [{k}], @w, @b, 0.001)
    %root: f32[{n}, {k}] = aten::rms_norm(%x, [{k}], @w, 0.001)
    %group: f32[2, {2c}, {h}, {w}] = aten::group_norm(%image, {c}, @c, @c, 0.001)
    %soft: f32[{n}, {k}] = aten::softmax.int(%x, -1)
    %logs: f32[{n}, {k}] = aten::log_softmax.int(%x, -1)
    return %layer, %root, %group, %soft, %logs
  )",
         .tolerance = 1e-4});
  sweep({.text = R"(
    input %x: bf16[{n}, {k}]
    input %image: bf16[2, {2c}, {h}, {w}]
    parameter @w: bf16[{k}]
    parameter @b: bf16[{k}]
    parameter @c: bf16[{2c}]
    %layer: bf16[{n}, {k}] = aten::layer_norm(%x, [{k}], @w, @b, 0.001)
    %soft: bf16[{n}, {k}] = aten::softmax.int(%x, -1)
    %root: bf16[{n}, {k}] = aten::rms_norm(%x, [{k}], @w, 0.001)
    %group: bf16[2, {2c}, {h}, {w}] = aten::group_norm(%image, {c}, @c, @c, 0.001)
    %bent: bf16[2, {2c}, {h}, {w}] = aten::silu(%group)
    return %layer, %soft, %root, %bent
  )",
         .tolerance = kBf16});
}

TEST_CASE("pools, reductions and other sizes on special inputs") {
  sweep({.text = R"(
    input %x: f32[2, {c}, {h}, {w}]
    %largest: f32[2, {c}, {h/2}, {w/2}] = aten::max_pool2d(%x, [3, 3], [2, 2], [1, 1])
    %average: f32[2, {c}, {h/2}, {w/2}] = aten::avg_pool2d(%x, [3, 3], [2, 2], [1, 1])
    %mean: f32[2, {c}] = aten::mean.dim(%x, [2, 3])
    %sum: f32[2, {h}, {w}] = aten::sum.dim_IntList(%x, [1])
    %top: f32[2, {c}, {h}] = aten::amax(%x, [3])
    %low: f32[2, {c}, {h}] = aten::amin(%x, [3])
    %near: f32[2, {c}, {2h}, {2w}] = aten::upsample_nearest2d.vec(%x, none, [2.0, 2.0])
    %smooth: f32[2, {c}, {2h}, {2w}] = aten::upsample_bilinear2d.vec(%x, none, false, [2.0, 2.0])
    %both: f32[2, {2c}, {h}, {w}] = aten::cat([%x, %x], 1)
    %running: f32[2, {c}, {h}, {w}] = aten::cumsum(%x, 3)
    return %largest, %average, %mean, %sum, %top, %low, %near, %smooth, %both, %running
  )"});
  sweep({.text = R"(
    input %x: bf16[2, {c}, {h}, {w}]
    %largest: bf16[2, {c}, {h/2}, {w/2}] = aten::max_pool2d(%x, [3, 3], [2, 2], [1, 1])
    %mean: bf16[2, {c}] = aten::mean.dim(%x, [2, 3])
    %both: bf16[2, {2c}, {h}, {w}] = aten::cat([%x, %x], 1)
    %near: bf16[2, {c}, {2h}, {2w}] = aten::upsample_nearest2d.vec(%x, none, [2.0, 2.0])
    %smooth: bf16[2, {c}, {2h}, {2w}] = aten::upsample_bilinear2d.vec(%x, none, false, [2.0, 2.0])
    return %largest, %mean, %both, %near, %smooth
  )",
         .tolerance = kBf16});
}

TEST_CASE("element-wise nodes on special inputs") {
  for (const char* op :
       {"relu", "sigmoid", "tanh",       "silu", "gelu", "hardswish", "hardsigmoid", "neg",    "abs",        "exp",
        "sqrt", "rsqrt",   "reciprocal", "log",  "erf",  "floor",     "round",       "square", "leaky_relu", "elu"}) {
    CAPTURE(std::string(op));
    const std::string text = std::string(R"(
    input %x: f32[{n}, {k}]
    %y: f32[{n}, {k}] = aten::)") +
                             op + "(%x)\n    return %y\n";
    sweep({.text = text.c_str(), .sees_denormals = std::string(op) == "log"});
  }
  sweep({.text = R"(
    input %x: f32[{n}, {k}]
    input %row: f32[{k}]
    input %column: f32[{n}, 1]
    %sum: f32[{n}, {k}] = aten::add.Tensor(%x, %row, alpha=2)
    %product: f32[{n}, {k}] = aten::mul.Tensor(%sum, %column)
    %share: f32[{n}, {k}] = aten::div.Tensor(%product, %row)
    %more: f32[{n}, {k}] = aten::maximum(%x, %row)
    %less: f32[{n}, {k}] = aten::minimum(%x, %column)
    %cut: f32[{n}, {k}] = aten::clamp(%x, -0.5, 0.5)
    %above: bool[{n}, {k}] = aten::gt.Tensor(%x, %row)
    %one: f32[{n}, {k}] = aten::where.self(%above, %x, %product)
    return %sum, %product, %share, %more, %less, %cut, %one
  )"});
}
