#include "lissome/runtime/step/pool/pool_steps.h"

#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

// Of windows that share x out.
WindowSizes read_adaptive(const StepBinder& binder, const PlacedValue& x, const PlacedValue& y, Window& window) {
  const size_t rank = x.sizes.size();
  binder.require((rank == 3 || rank == 4) && y.sizes.size() == rank, "values must have 3 or 4 dimensions");
  binder.require(y.sizes[0] == x.sizes[0], "batches of ", x.sizes[0], " and ", y.sizes[0]);
  binder.require(x.dtype != Dtype::u8, "bytes are not pooled so");
  if (rank == 4) window.height = x.sizes[2], window.out_height = y.sizes[2];
  window.batch = x.sizes[0], window.width = x.sizes.back(), window.out_width = y.sizes.back();
  binder.require((window.height > 0 && window.width > 0) || y.elements() == 0, "there is nothing to pool");
  binder.require_product(
      {std::max(window.height, window.width) + 1, std::max(window.out_height, window.out_width) + 1});
  return {x.sizes[1], y.sizes[1], 1};
}

void bind_pool(StepBinder& binder, const PoolStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  PoolCall call;
  const WindowSizes sizes =
      step.adaptive ? read_adaptive(binder, x, y, call.window) : read_window(binder, step.window, x, y, call.window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  call.channels = sizes.in_channels;
  call.average = step.average, call.adaptive = step.adaptive;
  step.divisor.fill(call);
  const bool bytes = x.dtype == Dtype::u8 && !call.average, narrow = x.dtype == Dtype::bf16;
  binder.require(y.dtype == x.dtype, "x is ", dtype_name(x.dtype), ", y ", dtype_name(y.dtype));
  binder.require(bytes || x.dtype != Dtype::u8, "bytes are not averaged");
  binder.set_call(bytes ? "pool_u8" : narrow ? "pool_bf16" : "pool_f32", call);
  binder.point(&PoolCall::x, step.x);
  binder.point(&PoolCall::y, step.y);
  const auto taps = static_cast<double>(call.window.kernel_height * call.window.kernel_width);
  binder.set_work(4 * taps * static_cast<double>(y.elements()),
                  static_cast<double>((x.elements() + y.elements()) * item_size(x.dtype)));
}

// Reads the window of a max pool from x to y; returns their channels.
int64_t read_max_window(const StepBinder& binder, const WindowFields& fields, const PlacedValue& x,
                        const PlacedValue& y, Window& window) {
  const WindowSizes sizes = read_window(binder, fields, x, y, window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  binder.require(x.dtype == y.dtype, "x is ", dtype_name(x.dtype), ", y ", dtype_name(y.dtype));
  binder.require(window.kernel_height * window.kernel_width <= 255, "the window has more than 255 taps");
  return sizes.in_channels;
}

template <typename T>
void bind_max_indices(StepBinder& binder, const MaxPoolIndicesStep& step, std::string_view kernel) {
  using Call = MaxPoolCallOf<T>;
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  Call call;
  call.channels = read_max_window(binder, step.window, x, y, call.window);
  binder.require_sizes(binder.value(step.indices), y.sizes);
  binder.set_call(kernel, call);
  binder.point(&Call::x, step.x);
  binder.point(&Call::y, step.y);
  binder.point(&Call::indices, step.indices);
  binder.set_work(0, static_cast<double>(4 * x.elements() + 5 * y.elements()));
}

template <typename T>
void bind_max_gradient(StepBinder& binder, const MaxPoolGradientStep& step, std::string_view kernel) {
  using Call = MaxPoolGradientCallOf<T>;
  const PlacedValue& dy = binder.value(step.dy);
  const PlacedValue& dx = binder.value(step.dx);
  Call call;
  call.channels = read_max_window(binder, step.window, dx, dy, call.window);
  binder.require(dy.elements() > 0 || dx.elements() == 0, "dy is empty");
  binder.require_sizes(binder.value(step.indices), dy.sizes);
  binder.set_call(kernel, call);
  binder.point(&Call::dy, step.dy);
  binder.point(&Call::indices, step.indices);
  binder.point(&Call::dx, step.dx);
  binder.set_work(0, static_cast<double>(4 * dx.elements() + 5 * dy.elements()));
}

void bind_max_pool_indices(StepBinder& binder, const MaxPoolIndicesStep& step) {
  if (binder.value(step.x).dtype == Dtype::bf16) {
    return bind_max_indices<uint16_t>(binder, step, "max_pool_indices_bf16");
  }
  bind_max_indices<float>(binder, step, "max_pool_indices");
}

void bind_max_pool_gradient(StepBinder& binder, const MaxPoolGradientStep& step) {
  if (binder.value(step.dy).dtype == Dtype::bf16) {
    return bind_max_gradient<uint16_t>(binder, step, "max_pool_gradient_bf16");
  }
  bind_max_gradient<float>(binder, step, "max_pool_gradient");
}

}  // namespace

std::vector<StepRow> list_pool_steps() {
  return {declare_step<PoolStep, bind_pool>(), declare_step<MaxPoolIndicesStep, bind_max_pool_indices>(),
          declare_step<MaxPoolGradientStep, bind_max_pool_gradient>()};
}

}  // namespace lissome
