// Every row of "channel_sums" and "channel_affine" against the portable one, and the steps together against batch norm
// and its gradients as they are defined; in bf16 against the f32 form of the same numbers.
#include "lissome/kernel/norm/batch_norm.h"

#include <doctest/doctest.h>

#include <cstring>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/isa/portable_output.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

constexpr double kEpsilon = 1e-5;

template <typename Call>
void run(std::string_view kernel, const Call& call, int parts = 2) {
  for (int part = 0; part < parts; ++part) find_kernel(kernel).function(&call, part, parts);
}

struct Norm {
  int64_t rows, channels;
  std::vector<float> x, dy, mask, weight, bias;
};

Norm make_norm(int64_t rows, int64_t channels, uint64_t seed, float offset) {
  TestNumbers numbers(seed);
  Norm norm{rows,
            channels,
            numbers.reals(rows * channels),
            numbers.reals(rows * channels),
            numbers.reals(rows * channels),
            numbers.reals(channels),
            numbers.reals(channels)};
  for (float& x : norm.x) x += offset;
  norm.mask[0] = NAN;
  return norm;
}

std::vector<float> blocks_together(const std::vector<double>& sums, int64_t channels) {
  std::vector<double> totals(static_cast<size_t>(2 * channels));
  for (size_t i = 0; i < sums.size(); ++i) totals[i % totals.size()] += sums[i];
  return {totals.begin(), totals.end()};
}

void check_sums(const Norm& norm, bool backward, bool masked) {
  ChannelSumsCall call;
  call.x = norm.x.data(), call.rows = norm.rows, call.channels = norm.channels;
  if (backward) call.dy = norm.dy.data(), call.mean = norm.bias.data();
  if (masked) call.mask = norm.mask.data();
  const auto sum = [&](const KernelRow& row, int parts) {
    std::vector<double> sums(static_cast<size_t>(kChannelBlocks * 2 * norm.channels), 777);
    call.sums = sums.data();
    for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
    return blocks_together(sums, norm.channels);
  };
  const auto rows = kernel_rows("channel_sums");
  const auto wanted = sum(rows.back(), 1);
  for (const KernelRow& row : rows) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    const auto whole = sum(row, 1);
    CHECK(count_differences(whole, wanted, 1e-6f * std::sqrt(static_cast<float>(norm.rows)) + 2e-6f) == 0);
    CHECK(sum(row, 3) == whole);
  }
}

void check_affine(const Norm& norm, bool relu, bool masked, bool second) {
  TestNumbers numbers(7);
  const auto scale = numbers.reals(norm.channels), center = numbers.reals(norm.channels);
  ChannelAffineCall call;
  call.x = norm.x.data(), call.scale = norm.weight.data(), call.shift = norm.bias.data();
  call.relu = relu, call.rows = norm.rows, call.channels = norm.channels;
  if (masked) call.mask = norm.mask.data();
  if (second) call.z = norm.dy.data(), call.z_scale = scale.data(), call.z_center = center.data();
  std::vector<float> y(norm.x.size()), wanted;
  call.y = y.data();
  kernel_rows("channel_affine").back().function(&call, 0, 1);
  wanted = y;
  for (const KernelRow& row : kernel_rows("channel_affine")) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    std::fill(y.begin(), y.end(), 777.0f);
    for (int part = 0; part < 3; ++part) row.function(&call, part, 3);
    CHECK(count_differences(y, wanted, 1e-6f) == 0);
  }
}

// relu(scale * x + shift) as a mask, made by the kernel or asked of x: the same bits, in each row of the table.
void check_rebuilt_mask(Norm norm) {
  TestNumbers numbers(11);
  const auto scale = numbers.reals(norm.channels), shift = numbers.reals(norm.channels);
  norm.x[1] = NAN;
  for (const KernelRow& affine_row : kernel_rows("channel_affine")) {
    if (!can_run(affine_row.isa)) continue;
    CAPTURE(isa_name(affine_row.isa));
    std::vector<float> mask(norm.x.size()), dx[2] = {mask, mask};
    ChannelAffineCall relu;
    relu.x = norm.x.data(), relu.scale = scale.data(), relu.shift = shift.data(), relu.y = mask.data();
    relu.relu = true, relu.rows = norm.rows, relu.channels = norm.channels;
    affine_row.function(&relu, 0, 1);
    std::vector<double> sums[2];
    for (const bool rebuilt : {false, true}) {
      sums[rebuilt].resize(static_cast<size_t>(kChannelBlocks * 2 * norm.channels));
      ChannelSumsCall sum;
      sum.x = norm.x.data(), sum.dy = norm.dy.data(), sum.mean = norm.bias.data(), sum.sums = sums[rebuilt].data();
      sum.rows = norm.rows, sum.channels = norm.channels;
      ChannelAffineCall affine;
      affine.x = norm.dy.data(), affine.scale = norm.weight.data(), affine.shift = norm.bias.data();
      affine.y = dx[rebuilt].data(), affine.rows = norm.rows, affine.channels = norm.channels;
      sum.mask = affine.mask = rebuilt ? norm.x.data() : mask.data();
      if (rebuilt) sum.mask_scale = affine.mask_scale = scale.data();
      if (rebuilt) sum.mask_shift = affine.mask_shift = shift.data();
      affine_row.function(&affine, 0, 1);
      for (const KernelRow& row : kernel_rows("channel_sums")) {
        if (row.isa == affine_row.isa) row.function(&sum, 0, 1);
      }
    }
    CHECK(std::memcmp(dx[0].data(), dx[1].data(), dx[0].size() * sizeof(float)) == 0);
    CHECK(std::memcmp(sums[0].data(), sums[1].data(), sums[0].size() * sizeof(double)) == 0);
  }
}

// What was max pooled, gathered by the kernels or spread before them: the same bits, in each row of the table.
template <typename T>
void check_gathered(const Window& window, int64_t channels, const std::string& suffix) {
  const Window w = finish_window(window);
  const int64_t pooled = w.batch * w.out_height * w.out_width * channels, rows = w.batch * w.height * w.width;
  TestNumbers numbers(13);
  const auto scale = numbers.reals(channels), shift = numbers.reals(channels);
  std::vector<T> x, dy;
  for (const float value : numbers.reals(rows * channels)) narrow_portable(value, x.emplace_back());
  for (const float value : numbers.reals(pooled)) narrow_portable(value, dy.emplace_back());
  std::vector<T> spread(x.size()), y(static_cast<size_t>(pooled));
  std::vector<uint8_t> indices(y.size());
  run("max_pool_indices" + suffix, MaxPoolCallOf<T>{x.data(), y.data(), indices.data(), channels, w});
  run("max_pool_gradient" + suffix, MaxPoolGradientCallOf<T>{dy.data(), indices.data(), spread.data(), channels, w});
  for (const KernelRow& affine_row : kernel_rows("channel_affine" + suffix)) {
    if (!can_run(affine_row.isa)) continue;
    CAPTURE(isa_name(affine_row.isa));
    std::vector<T> dx[2] = {y, y};
    std::vector<double> sums[2];
    for (const bool gathered : {false, true}) {
      dx[gathered].resize(x.size()), sums[gathered].resize(static_cast<size_t>(kChannelBlocks * 2 * channels));
      ChannelSumsCallOf<T> sum;
      sum.x = x.data(), sum.mask = x.data(), sum.mean = shift.data(), sum.sums = sums[gathered].data();
      sum.rows = rows, sum.channels = channels;
      ChannelAffineCallOf<T> affine;
      affine.scale = scale.data(), affine.shift = shift.data(), affine.z = x.data(), affine.y = dx[gathered].data();
      affine.rows = rows, affine.channels = channels;
      sum.dy = affine.x = gathered ? dy.data() : spread.data();
      if (gathered) sum.indices = affine.indices = indices.data(), sum.window = affine.window = w;
      for (int part = 0; part < 3; ++part) affine_row.function(&affine, part, 3);
      for (const KernelRow& row : kernel_rows("channel_sums" + suffix)) {
        for (int part = 0; part < 3 && row.isa == affine_row.isa; ++part) row.function(&sum, part, 3);
      }
    }
    CHECK(dx[0] == dx[1]);
    CHECK(sums[0] == sums[1]);
  }
}

// Gradients by their definition, in double: dx = weight * r * (dy - mean(dy) - xhat * mean(dy * xhat)).
void check_gradients(const Norm& norm, const std::vector<float>& dx, const std::vector<float>& weight_gradient,
                     const std::vector<float>& bias_gradient, const std::vector<float>& y) {
  const auto rows = static_cast<double>(norm.rows);
  for (int64_t c = 0; c < norm.channels; ++c) {
    const auto at = [&](int64_t row) { return static_cast<size_t>(row * norm.channels + c); };
    const auto channel = static_cast<size_t>(c);
    double mean = 0, variance = 0, sum = 0, products = 0;
    for (int64_t row = 0; row < norm.rows; ++row) mean += norm.x[at(row)] / rows;
    for (int64_t row = 0; row < norm.rows; ++row)
      variance += (norm.x[at(row)] - mean) * (norm.x[at(row)] - mean) / rows;
    const double reciprocal = 1 / std::sqrt(variance + kEpsilon);
    for (int64_t row = 0; row < norm.rows; ++row) {
      sum += norm.dy[at(row)];
      products += norm.dy[at(row)] * (norm.x[at(row)] - mean) * reciprocal;
    }
    CHECK(weight_gradient[channel] == doctest::Approx(products).epsilon(1e-5).scale(1));
    CHECK(bias_gradient[channel] == doctest::Approx(sum).epsilon(1e-5).scale(1));
    int64_t wrong = 0;
    for (int64_t row = 0; row < norm.rows; ++row) {
      const double normal = (norm.x[at(row)] - mean) * reciprocal;
      const double wanted_y = normal * norm.weight[channel] + norm.bias[channel];
      const double wanted =
          norm.weight[channel] * reciprocal * (norm.dy[at(row)] - sum / rows - normal * products / rows);
      wrong += !close_enough(dx[at(row)], static_cast<float>(wanted), 1e-5f);
      wrong += !close_enough(y[at(row)], static_cast<float>(wanted_y), 1e-5f);
    }
    CHECK(wrong == 0);
  }
}

void check_norm(const Norm& norm) {
  const auto channels = static_cast<size_t>(norm.channels);
  std::vector<double> sums(static_cast<size_t>(kChannelBlocks) * 2 * channels);
  std::vector<float> mean(channels), reciprocal(channels), new_mean(channels), new_var(channels), scale(channels),
      shift(channels), zero(channels, 0.0f), one(channels, 1.0f), y(norm.x.size()), dx(norm.x.size()),
      weight_gradient(channels), bias_gradient(channels), dy_scale(channels), x_scale(channels);
  ChannelSumsCall sum;
  sum.x = norm.x.data(), sum.sums = sums.data(), sum.rows = norm.rows, sum.channels = norm.channels;
  run("channel_sums", sum);
  BatchNormStatisticsCall statistics;
  statistics.sums = sums.data(), statistics.x = norm.x.data();
  statistics.weight = norm.weight.data(), statistics.bias = norm.bias.data();
  statistics.running_mean = zero.data(), statistics.running_var = one.data();
  statistics.mean = mean.data(), statistics.reciprocal_deviation = reciprocal.data();
  statistics.new_mean = new_mean.data(), statistics.new_var = new_var.data();
  statistics.scale = scale.data(), statistics.shift = shift.data();
  statistics.rows = norm.rows, statistics.channels = norm.channels, statistics.epsilon = kEpsilon;
  run("batch_norm_statistics", statistics);
  for (size_t c = 0; c < channels; ++c) {
    const double variance = 1 / (static_cast<double>(reciprocal[c]) * reciprocal[c]) - kEpsilon;
    const double unbiased = variance * static_cast<double>(norm.rows) / static_cast<double>(norm.rows - 1);
    CHECK(new_mean[c] == doctest::Approx(0.1 * mean[c]).epsilon(1e-5));
    CHECK(new_var[c] == doctest::Approx(0.9 + 0.1 * unbiased).epsilon(1e-5));
  }
  ChannelAffineCall apply;
  apply.x = norm.x.data(), apply.y = y.data(), apply.scale = scale.data(), apply.shift = shift.data();
  apply.rows = norm.rows, apply.channels = norm.channels;
  run("channel_affine", apply);
  sum.dy = norm.dy.data(), sum.mean = mean.data();
  run("channel_sums", sum);
  BatchNormGradientsCall gradients;
  gradients.sums = sums.data(), gradients.weight = norm.weight.data();
  gradients.reciprocal_deviation = reciprocal.data();
  gradients.weight_gradient = weight_gradient.data(), gradients.bias_gradient = bias_gradient.data();
  gradients.dy_scale = dy_scale.data(), gradients.x_scale = x_scale.data(), gradients.shift = shift.data();
  gradients.rows = norm.rows, gradients.channels = norm.channels;
  run("batch_norm_gradients", gradients);
  apply.x = norm.dy.data(), apply.y = dx.data(), apply.scale = dy_scale.data(), apply.shift = shift.data();
  apply.z = norm.x.data(), apply.z_scale = x_scale.data(), apply.z_center = mean.data();
  run("channel_affine", apply);
  check_gradients(norm, dx, weight_gradient, bias_gradient, y);
}

// Rounds the rows, which stay f32 numbers.
std::vector<uint16_t> round_rows(std::vector<float>& rows) {
  std::vector<uint16_t> narrow;
  for (float& value : rows) {
    narrow.push_back(narrow_bf16(value));
    value = widen_bf16(narrow.back());
  }
  return narrow;
}

template <typename Call>
std::vector<float> sum_portable(std::string_view kernel, Call call, int64_t channels) {
  std::vector<double> sums(static_cast<size_t>(kChannelBlocks * 2 * channels));
  call.sums = sums.data();
  kernel_rows(kernel).back().function(&call, 0, 1);
  return blocks_together(sums, channels);
}

void check_bf16_sums(const ChannelSumsCall& wide, const ChannelSumsBf16Call& narrow) {
  const auto wanted = sum_portable("channel_sums", wide, wide.channels);
  const float tolerance = 1e-6f * std::sqrt(static_cast<float>(wide.rows)) + 2e-6f;
  for (const KernelRow& row : kernel_rows("channel_sums_bf16")) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    std::vector<double> sums(static_cast<size_t>(kChannelBlocks * 2 * wide.channels), 777);
    ChannelSumsBf16Call call = narrow;
    call.sums = sums.data();
    for (int part = 0; part < 3; ++part) row.function(&call, part, 3);
    CHECK(count_differences(blocks_together(sums, wide.channels), wanted, tolerance) == 0);
  }
}

void check_bf16_affine(ChannelAffineCall wide, ChannelAffineBf16Call narrow) {
  std::vector<float> wanted(static_cast<size_t>(wide.rows * wide.channels));
  wide.y = wanted.data();
  kernel_rows("channel_affine").back().function(&wide, 0, 1);
  for (const KernelRow& row : kernel_rows("channel_affine_bf16")) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    std::vector<uint16_t> y(wanted.size(), 777);
    narrow.y = y.data();
    for (int part = 0; part < 3; ++part) row.function(&narrow, part, 3);
    int64_t wrong = 0;
    for (size_t i = 0; i < y.size(); ++i) wrong += !is_rounded(y[i], wanted[i], 1e-6f);
    CHECK(wrong == 0);
  }
}

void check_bf16(Norm norm) {
  const auto x = round_rows(norm.x), dy = round_rows(norm.dy), mask = round_rows(norm.mask);
  for (int form = 0; form < 3; ++form) {
    ChannelSumsCall wide;
    ChannelSumsBf16Call narrow;
    wide.x = norm.x.data(), narrow.x = x.data();
    if (form > 0) wide.dy = norm.dy.data(), narrow.dy = dy.data(), wide.mean = narrow.mean = norm.bias.data();
    if (form > 1) wide.mask = norm.mask.data(), narrow.mask = mask.data();
    wide.rows = narrow.rows = norm.rows, wide.channels = narrow.channels = norm.channels;
    check_bf16_sums(wide, narrow);
  }
  for (int form = 0; form < 8; ++form) {
    ChannelAffineCall wide;
    ChannelAffineBf16Call narrow;
    wide.x = norm.x.data(), narrow.x = x.data();
    wide.scale = narrow.scale = norm.weight.data(), wide.shift = narrow.shift = norm.bias.data();
    wide.relu = narrow.relu = (form & 1) != 0;
    if (form & 2) wide.mask = norm.mask.data(), narrow.mask = mask.data();
    if (form & 4) wide.z = norm.dy.data(), narrow.z = dy.data(), wide.z_scale = narrow.z_scale = norm.bias.data();
    wide.rows = narrow.rows = norm.rows, wide.channels = narrow.channels = norm.channels;
    check_bf16_affine(wide, narrow);
  }
  const auto find_statistics = [&](auto call, std::string_view kernel, std::string_view sums, auto sum_call) {
    std::vector<double> blocks(static_cast<size_t>(kChannelBlocks * 2 * norm.channels));
    std::vector<float> results[6];
    for (auto& result : results) result.resize(static_cast<size_t>(norm.channels));
    sum_call.sums = blocks.data(), call.sums = blocks.data();
    sum_call.rows = call.rows = norm.rows, sum_call.channels = call.channels = norm.channels;
    kernel_rows(sums).back().function(&sum_call, 0, 1);
    call.running_mean = norm.weight.data(), call.running_var = norm.bias.data();
    call.mean = results[0].data(), call.reciprocal_deviation = results[1].data(), call.new_mean = results[2].data();
    call.new_var = results[3].data(), call.scale = results[4].data(), call.shift = results[5].data();
    kernel_rows(kernel).back().function(&call, 0, 1);
    std::vector<float> all;
    for (const auto& result : results) all.insert(all.end(), result.begin(), result.end());
    return all;
  };
  BatchNormStatisticsCall wide;
  BatchNormStatisticsBf16Call narrow;
  ChannelSumsCall wide_sums;
  ChannelSumsBf16Call narrow_sums;
  wide.x = wide_sums.x = norm.x.data(), narrow.x = narrow_sums.x = x.data();
  CHECK(find_statistics(narrow, "batch_norm_statistics_bf16", "channel_sums_bf16", narrow_sums) ==
        find_statistics(wide, "batch_norm_statistics", "channel_sums", wide_sums));
}

}  // namespace

TEST_CASE("sums and affine maps of channels agree with the portable form, whatever the number of parts") {
  for (const auto& [rows, channels] : {std::pair<int64_t, int64_t>{2, 1}, {5, 7}, {100, 64}, {700, 70}, {3001, 33}}) {
    CAPTURE(rows);
    CAPTURE(channels);
    const Norm norm = make_norm(rows, channels, static_cast<uint64_t>(rows), 0.5f);
    check_sums(norm, false, false);
    check_sums(norm, true, false);
    check_sums(norm, true, true);
    for (int form = 0; form < 8; ++form) check_affine(norm, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0);
  }
}

TEST_CASE("a mask that is ReLU of an affine map gives the same bits when it is asked of what was mapped") {
  check_rebuilt_mask(make_norm(5, 7, 3, 0));
  check_rebuilt_mask(make_norm(700, 70, 4, 0.5f));
}

TEST_CASE("batch norm and its gradients are what they are defined to be, also far from zero") {
  check_norm(make_norm(40, 20, 1, 0));
  check_norm(make_norm(3000, 70, 2, 3));
  check_norm(make_norm(2, 5, 3, 0));
}

TEST_CASE("sums, statistics and affine maps of bf16 rows are those of the same numbers in f32, rounded once") {
  for (const auto& [rows, channels] : {std::pair<int64_t, int64_t>{2, 1}, {5, 7}, {100, 64}, {700, 70}, {3001, 33}}) {
    CAPTURE(rows);
    CAPTURE(channels);
    check_bf16(make_norm(rows, channels, static_cast<uint64_t>(rows), 0.5f));
  }
}

TEST_CASE("a gradient of what was max pooled is gathered by the steps of the norm") {
  Window w;
  w.batch = 2, w.height = 15, w.width = 13;
  w.kernel_height = w.kernel_width = 3, w.stride_height = w.stride_width = 2, w.pad_height = w.pad_width = 1;
  Window even = w;
  even.height = even.width = 8, even.kernel_height = even.kernel_width = 2, even.pad_height = even.pad_width = 0;
  for (const int64_t channels : {1, 20, 64, 100}) {
    CAPTURE(channels);
    check_gathered<float>(w, channels, ""), check_gathered<uint16_t>(w, channels, "_bf16");
    check_gathered<float>(even, channels, ""), check_gathered<uint16_t>(even, channels, "_bf16");
  }
}
