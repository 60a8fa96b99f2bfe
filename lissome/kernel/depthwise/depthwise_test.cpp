#include "lissome/kernel/depthwise/depthwise.h"

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/bf16_arrays.h"

using namespace lissome;

namespace {

// Windows of three whose rows make blocks of seven pixels, one column of padding beside them.
Window draw_sevens(TestNumbers& numbers) {
  Window w;
  w.batch = numbers.between(1, 2), w.height = numbers.between(3, 8);
  w.kernel_height = w.kernel_width = 3, w.pad_height = w.pad_width = 1;
  w.stride_width = numbers.between(1, 2), w.width = 7 * w.stride_width * numbers.between(1, 5);
  return finish_window(w);
}

// Windows that go some pixels at a time and others, rows of all lengths around that.
Window draw_window(TestNumbers& numbers) {
  if (numbers.between(0, 3) == 0) return draw_sevens(numbers);
  Window w;
  w.batch = numbers.between(1, 3), w.height = numbers.between(5, 12), w.width = numbers.between(7, 36);
  w.kernel_height = numbers.between(1, 5), w.kernel_width = numbers.between(1, 7);
  w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
  w.pad_height = numbers.between(0, 2), w.pad_width = numbers.between(0, 3);
  w.dilation_height = numbers.between(1, 2), w.dilation_width = w.kernel_width < 4 ? numbers.between(1, 2) : 1;
  if (w.dilation_height == 2) w.kernel_height = 3;
  return finish_window(w);
}

// Windows that may be longer than x, over rows and over images.
Window draw_long_window(TestNumbers& numbers) {
  Window w;
  const bool row = numbers.between(0, 2) == 0;
  w.batch = numbers.between(1, 2), w.height = row ? 1 : numbers.between(3, 20), w.width = numbers.between(3, 40);
  w.kernel_height = row ? 1 : numbers.between(1, 12), w.kernel_width = numbers.between(4, 31);
  w.pad_height = w.kernel_height / 2, w.pad_width = numbers.between(w.kernel_width / 2, w.kernel_width);
  return finish_window(w);
}

template <typename Call>
void draw_ending(TestNumbers& numbers, Call& call) {
  call.residual_place = static_cast<ResidualPlace>(numbers.between(0, 2));
  call.epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f};
  call.y_stride = call.residual_stride = call.channels;
}

}  // namespace

TEST_CASE("depthwise_f32 agrees with the portable form") {
  TestNumbers numbers(5);
  for (int i = 0; i < 150; ++i) {
    DepthwiseF32Call call;
    const Window w = call.window = i % 3 == 0 ? draw_long_window(numbers) : draw_window(numbers);
    call.channels = numbers.between(1, 150);
    const int64_t taps = w.kernel_height * w.kernel_width, pixels = w.batch * w.out_height * w.out_width;
    auto x = numbers.reals(w.batch * w.height * w.width * call.channels);
    if (i % 5 == 0) x[x.size() / 2] = std::nanf(""), x[x.size() / 3] = INFINITY, x[0] = 1e-40f;
    const auto weight = numbers.reals(call.channels * taps), bias = numbers.reals(call.channels);
    const auto residual = numbers.reals(pixels * call.channels);
    std::vector<float> packed(weight.size());
    pack_depthwise(weight.data(), call.channels, 1, taps, packed.data());
    if (i % 4 == 3) packed[packed.size() / 2] = INFINITY;
    call.x = x.data(), call.weight = packed.data(), call.bias = numbers.between(0, 1) ? bias.data() : nullptr;
    call.residual = residual.data();
    draw_ending(numbers, call);
    check_rows("depthwise_f32", call, pixels * call.channels, 1e-5f,
               [](DepthwiseF32Call& filled, float* y) { filled.y = y; });
  }
}

namespace {

// `kernel`_bf16, which `Call` calls, rounds what `kernel`_f32 gives for the same numbers.
template <typename Call>
void check_rounding(const std::string& kernel, TestNumbers& numbers, const Window& w, int64_t channels, int64_t group,
                    bool special) {
  Call call;
  DepthwiseF32Call wide;
  call.window = wide.window = w, call.channels = wide.channels = channels, call.group = wide.group = group;
  const int64_t taps = w.kernel_height * w.kernel_width, pixels = w.batch * w.out_height * w.out_width;
  auto x = make_bf16(numbers, w.batch * w.height * w.width * channels);
  if (special) x[x.size() / 2] = 0x7fc0, x[x.size() / 3] = 0x7f80, x[0] = 1;
  const auto residual = make_bf16(numbers, pixels * channels);
  std::vector<float> wide_x, wide_residual, wide_weight, packed(static_cast<size_t>(channels * taps * group));
  for (const uint16_t value : x) wide_x.push_back(widen_bf16(value));
  for (const uint16_t value : residual) wide_residual.push_back(widen_bf16(value));
  const auto weight = make_bf16(numbers, channels * taps * group);
  for (const uint16_t value : weight) wide_weight.push_back(widen_bf16(value));
  pack_depthwise(wide_weight.data(), channels, group, taps, packed.data());
  std::vector<uint16_t> pairs(weight.size());
  if constexpr (std::is_same_v<Call, GroupedBf16Call>) {
    pack_grouped_bf16(weight.data(), channels, group, taps, pairs.data());
    call.weight = pairs.data();
  } else {
    call.weight = packed.data();
  }
  const auto bias = numbers.reals(channels);
  call.x = x.data(), call.bias = numbers.between(0, 1) ? bias.data() : nullptr;
  draw_ending(numbers, call);
  wide.x = wide_x.data(), wide.weight = packed.data(), wide.bias = call.bias, wide.residual = wide_residual.data();
  wide.residual_place = call.residual_place, wide.epilogue = call.epilogue;
  wide.y_stride = wide.residual_stride = channels;
  std::vector<float> exact(static_cast<size_t>(pixels * channels));
  wide.y = exact.data();
  kernel_rows(kernel + "_f32").back().function(&wide, 0, 1);
  for (const KernelRow& row : kernel_rows(kernel + "_bf16")) {
    if (!can_run(row.isa)) continue;
    // In place of the residual, as plans do.
    std::vector<uint16_t> y = residual;
    call.residual = call.y = y.data();
    for (int part = 0; part < 3; ++part) row.function(&call, part, 3);
    int64_t wrong = 0;
    for (size_t k = 0; k < y.size(); ++k) wrong += !is_rounded(y[k], exact[k], 1e-5f);
    CAPTURE(isa_name(row.isa));
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("depthwise_bf16 rounds what depthwise_f32 gives for the same numbers") {
  TestNumbers numbers(6);
  for (int i = 0; i < 150; ++i) {
    const Window w = i % 3 == 0 ? draw_long_window(numbers) : draw_window(numbers);
    check_rounding<DepthwiseBf16Call>("depthwise", numbers, w, numbers.between(1, 150), 1, i % 5 == 0);
  }
}

TEST_CASE("grouped_f32 agrees with the portable form, and grouped_bf16 rounds what it gives") {
  TestNumbers numbers(7);
  for (int i = 0; i < 150; ++i) {
    const bool is_long = i % 5 == 0;
    Window w = is_long ? draw_long_window(numbers) : draw_window(numbers);
    if (i % 7 == 0) w.width += 70, w = finish_window(w);  // more than a tile register's four in a line
    const int64_t group = is_long ? 2 : int64_t{2} << i % 4, channels = group * numbers.between(1, 80 / group);
    CAPTURE(group);
    check_rounding<GroupedBf16Call>("grouped", numbers, w, channels, group, i % 3 == 0);
    DepthwiseF32Call call;
    call.window = w, call.channels = channels, call.group = group;
    const auto x = numbers.reals(w.batch * w.height * w.width * channels);
    const auto weight = numbers.reals(channels * w.kernel_height * w.kernel_width * group);
    const int64_t outputs = w.batch * w.out_height * w.out_width * channels;
    const auto residual = numbers.reals(outputs);
    call.x = x.data(), call.weight = weight.data(), call.residual = residual.data();
    draw_ending(numbers, call);
    check_rows("grouped_f32", call, outputs, 2e-5f, [](DepthwiseF32Call& filled, float* y) { filled.y = y; });
  }
}
