// The window that a convolution or pooling slides over an image: its numbers from attributes, and that they, the sizes
// of both images and what a part copies of them fit each other. Kernels rely on that: they compute places from these
// numbers without looking at each product again.
#include "lissome/runtime/step/step_window.h"

#include <algorithm>
#include <tuple>

namespace lissome {
namespace {

// Two numbers, (height, width), from one number a spatial dimension.
std::pair<int64_t, int64_t> read_pair(const StepBinder& binder, std::string_view name,
                                      const std::vector<int64_t>& numbers, size_t spatial, int64_t fallback) {
  if (numbers.empty()) return {fallback, fallback};
  binder.require(numbers.size() == spatial, quote(name), " has ", numbers.size(), " numbers, must have ", spatial);
  if (spatial == 1) return {fallback, numbers[0]};
  return {numbers[0], numbers[1]};
}

// One axis: `size` of the image that the window slides over, `count` of its places there.
struct SlidingAxis {
  int64_t size, count, kernel, stride, pad, pad_end, dilation;

  int64_t padded() const { return size + pad + pad_end; }
  // What the padding and the last window may span: all of it that a band or a line copied for the kernel can hold.
  int64_t span() const { return padded() + (count + kBandPlaces) * stride + kernel * dilation; }

  static constexpr int64_t kBandPlaces = 8;
};

// Every window begins within the padded image, and no window more would fit: but for the rows that a pooling rounds up
// to or a transposed convolution adds (output_padding), fewer than a stride or a dilation.
void require_places(const StepBinder& binder, std::string_view name, const SlidingAxis& axis) {
  const int64_t padded = axis.padded(), extent = (axis.kernel - 1) * axis.dilation + 1;
  const int64_t left = padded - extent - axis.dilation;
  const bool begins_inside = axis.count - 1 <= (padded + axis.dilation - 1) / axis.stride;
  const bool reaches_end = left < 0 || axis.count > left / axis.stride;
  binder.require(begins_inside && reaches_end, "a window of ", axis.kernel, " with stride ", axis.stride, ", padding ",
                 axis.pad, " before and ", axis.pad_end, " behind, and dilation ", axis.dilation,
                 " does not slide over a ", name, " of ", axis.size, " in ", axis.count, " places");
}

}  // namespace

void require_geometry(const StepBinder& binder, const WindowFields& fields, const Window& w, int64_t channels,
                      bool transposed, bool empty) {
  const std::vector<int64_t>& end = fields.padding_end.empty() ? fields.padding : fields.padding_end;
  const auto [bottom, right] = read_pair(binder, "padding_end", end, end.size(), 0);
  SlidingAxis down = {w.height,     w.out_height, w.kernel_height,  w.stride_height,
                      w.pad_height, bottom,       w.dilation_height};
  SlidingAxis across = {w.width, w.out_width, w.kernel_width, w.stride_width, w.pad_width, right, w.dilation_width};
  for (SlidingAxis* axis : {&down, &across}) {
    if (transposed) std::swap(axis->size, axis->count);
    binder.require_product({axis->count + SlidingAxis::kBandPlaces, axis->stride});
  }
  binder.require_product({std::max<int64_t>(w.batch, 1), down.span(), across.span(), channels, 4});
  if (empty) return;
  require_places(binder, "height", down);
  require_places(binder, "width", across);
}

void read_window_numbers(const StepBinder& binder, const WindowFields& fields, size_t spatial, Window& window) {
  std::tie(window.kernel_height, window.kernel_width) = read_pair(binder, "kernel", fields.kernel, spatial, 1);
  std::tie(window.stride_height, window.stride_width) = read_pair(binder, "stride", fields.stride, spatial, 1);
  std::tie(window.dilation_height, window.dilation_width) = read_pair(binder, "dilation", fields.dilation, spatial, 1);
  std::tie(window.pad_height, window.pad_width) = read_pair(binder, "padding", fields.padding, spatial, 0);
  read_pair(binder, "padding_end", fields.padding_end, spatial, 0);
}

WindowSizes read_window(const StepBinder& binder, const WindowFields& fields, const PlacedValue& x,
                        const PlacedValue& y, Window& window, Format x_format, bool transposed) {
  const size_t rank = x.sizes.size();
  binder.require((rank == 3 || rank == 4) && y.sizes.size() == rank, "values must have 3 or 4 dimensions");
  if (x_format == Format::row_major) {
    binder.require_row_major(x);
  } else {
    binder.require(x.is_dense(Format::channels_last), "x is not dense with channels last");
  }
  binder.require(x.sizes[1] > 0 && y.sizes[1] > 0, "there are no channels");
  const bool empty = y.elements() == 0;
  binder.require(x.elements() > 0 || empty, "x is empty");
  const size_t spatial = rank - 2;
  window.batch = x.sizes[0];
  window.width = x.sizes[rank - 1];
  window.out_width = y.sizes[rank - 1];
  if (rank == 4) window.height = x.sizes[2], window.out_height = y.sizes[2];
  read_window_numbers(binder, fields, spatial, window);
  const WindowSizes sizes{x.sizes[1], y.sizes[1], fields.groups};
  binder.require(y.sizes[0] == window.batch, "batches differ");
  binder.require(sizes.in_channels % sizes.groups == 0 && sizes.out_channels % sizes.groups == 0,
                 "channels do not divide into groups");
  require_geometry(binder, fields, window, sizes.in_channels + sizes.out_channels, transposed, empty);
  // Packed weights are rounded up to whole panels, per group.
  binder.require_product({sizes.out_channels + sizes.groups * kLinearPanel,
                          sizes.in_channels / sizes.groups + kLinearPanel, window.kernel_height, window.kernel_width,
                          4});
  // Kernels loop over images, lines and pixels: over none where y has none.
  if (empty) window.batch = 0;
  return sizes;
}

void require_few_phases(const StepBinder& binder, const Window& window) {
  binder.require(window.stride_height <= kMostPhases && window.stride_width <= kMostPhases, "strides are larger than ",
                 kMostPhases);
}

void require_winograd_window(const StepBinder& binder, const Window& w, int64_t groups) {
  binder.require(w.kernel_height == 3 && w.kernel_width == 3 && w.stride_height == 1 && w.stride_width == 1 &&
                     w.dilation_height == 1 && w.dilation_width == 1 && groups == 1,
                 "it takes 3x3 windows of stride 1, one group");
}

}  // namespace lissome
