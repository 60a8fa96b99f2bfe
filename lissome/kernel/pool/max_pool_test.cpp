// Every row of "max_pool_indices" and "max_pool_gradient", f32 and bf16, against the portable one, exactly.
#include "lissome/kernel/pool/max_pool.h"

#include <doctest/doctest.h>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

bool same(const std::vector<float>& left, const std::vector<float>& right) {
  return count_differences(left, right, 0) == 0;
}
bool same(const std::vector<uint16_t>& left, const std::vector<uint16_t>& right) { return left == right; }

void convert(const std::vector<float>& from, std::vector<float>& to) { to = from; }
void convert(const std::vector<float>& from, std::vector<uint16_t>& to) {
  for (const float value : from) to.push_back(narrow_bf16(value));
}

template <typename T>
void check_dtype(Window window, int64_t channels, uint64_t seed) {
  const std::string suffix = sizeof(T) == 2 ? "_bf16" : "";
  const Window w = finish_window(window);
  CAPTURE(seed);
  TestNumbers numbers(seed);
  auto wide = numbers.reals(w.batch * w.height * w.width * channels);
  // Equal numbers, infinities and NaN are among them.
  for (float& value : wide) value = std::round(value * 4);
  if (wide.size() > 20) wide[3] = NAN, wide[7] = -INFINITY, wide[20] = NAN;
  const int64_t results = w.batch * w.out_height * w.out_width * channels;
  std::vector<T> x, dy, y(static_cast<size_t>(results)), dx(wide.size()), wanted_y, wanted_dx;
  convert(wide, x), convert(numbers.reals(results), dy);
  std::vector<uint8_t> indices(static_cast<size_t>(results)), wanted_indices;
  MaxPoolCallOf<T> pool;
  pool.x = x.data(), pool.y = y.data(), pool.indices = indices.data(), pool.channels = channels, pool.window = w;
  kernel_rows("max_pool_indices" + suffix).back().function(&pool, 0, 1);
  wanted_y = y, wanted_indices = indices;
  MaxPoolGradientCallOf<T> gradient;
  gradient.dy = dy.data(), gradient.indices = wanted_indices.data(), gradient.dx = dx.data();
  gradient.channels = channels, gradient.window = w;
  kernel_rows("max_pool_gradient" + suffix).back().function(&gradient, 0, 1);
  wanted_dx = dx;
  for (const KernelRow& row : kernel_rows("max_pool_indices" + suffix)) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    std::fill(indices.begin(), indices.end(), uint8_t{99});
    for (int part = 0; part < 3; ++part) row.function(&pool, part, 3);
    CHECK(same(y, wanted_y));
    CHECK(indices == wanted_indices);
  }
  for (const KernelRow& row : kernel_rows("max_pool_gradient" + suffix)) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    std::fill(dx.begin(), dx.end(), T{77});
    for (int part = 0; part < 3; ++part) row.function(&gradient, part, 3);
    CHECK(same(dx, wanted_dx));
  }
}

void check_case(const Window& window, int64_t channels, uint64_t seed) {
  check_dtype<float>(window, channels, seed);
  check_dtype<uint16_t>(window, channels, seed);
}

}  // namespace

TEST_CASE("max pooling finds indices, and gradients go there") {
  check_case({.batch = 2,
              .height = 8,
              .width = 8,
              .kernel_height = 2,
              .kernel_width = 2,
              .stride_height = 2,
              .stride_width = 2},
             64, 1);
  check_case({.batch = 1,
              .height = 15,
              .width = 15,
              .kernel_height = 3,
              .kernel_width = 3,
              .stride_height = 2,
              .stride_width = 2,
              .pad_height = 1,
              .pad_width = 1},
             20, 2);
  TestNumbers numbers(5);
  for (uint64_t seed = 10; seed < 40; ++seed) {
    Window w;
    w.batch = numbers.between(1, 2), w.height = numbers.between(5, 12), w.width = numbers.between(5, 12);
    w.kernel_height = numbers.between(1, 3), w.kernel_width = numbers.between(1, 3);
    w.stride_height = numbers.between(1, 4), w.stride_width = numbers.between(1, 4);
    w.pad_height = w.kernel_height / 2, w.pad_width = w.kernel_width / 2;
    w.dilation_height = numbers.between(1, 2), w.dilation_width = numbers.between(1, 2);
    check_case(w, numbers.between(1, 40), seed);
  }
}
