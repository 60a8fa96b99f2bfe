#include "lissome/lower/candidate/geometry.h"

#include "lissome/lower/candidate/refusals.h"

namespace lissome {

std::vector<int64_t> spread(std::vector<int64_t> numbers, size_t spatial) {
  if (numbers.size() == 1) numbers.resize(spatial, numbers[0]);
  return numbers;
}

std::string refuse_geometry(const Node& node) {
  for (const char* name : {"stride", "padding", "dilation"}) {
    const auto numbers = read_integers(node.argument(name));
    if (!numbers) return std::string(name) + " is computed";
    for (const int64_t number : *numbers) {
      if (number < 0) return std::string(name) + " is negative";
    }
  }
  return node.argument("groups").get<int64_t>() ? std::string() : "groups is computed";
}

std::string refuse_uneven_padding(const Node& node) {
  const size_t spatial = node.argument("stride").list().size();
  return node.argument("padding").list().size() > spatial ? "it pads the two ends of a dimension by different amounts"
                                                          : std::string();
}

bool is_depthwise(const Node& node, const at::Tensor& weight) {
  const int64_t groups = *node.argument("groups").get<int64_t>();
  return groups > 1 && weight.size(1) == 1 && weight.size(0) == groups;
}

bool has_small_groups(const Node& node, const at::Tensor& weight) {
  const int64_t groups = groups_of(node);
  return groups > 1 && takes_group(weight.size(1), weight.size(0) / groups);
}

bool reads_planes(const PlanBuilder& builder, const Node& node, const Argument& x, const std::vector<int64_t>& weight) {
  constexpr int64_t kMostPlanes = 4;
  return builder.format(x.value()) == Format::row_major && groups_of(node) == 1 && weight[1] <= kMostPlanes &&
         find_kernel("conv_f32").isa != Isa::amx;
}

ConvBf16Call describe_conv_bf16(const Node& node, const std::vector<int64_t>& weight, bool transposed) {
  ConvBf16Call call;
  call.transposed = transposed, call.groups = *node.argument("groups").get<int64_t>();
  call.out_channels = transposed ? weight[1] * call.groups : weight[0];
  call.in_channels = transposed ? weight[0] : weight[1] * call.groups;
  const size_t spatial = weight.size() - 2;
  const auto read = [&](std::vector<int64_t> numbers, int64_t& height, int64_t& width) {
    numbers = spread(std::move(numbers), spatial);
    width = numbers[spatial - 1];
    if (spatial == 2) height = numbers.front();
  };
  Window& w = call.window;
  read({weight.begin() + 2, weight.end()}, w.kernel_height, w.kernel_width);
  read(*read_integers(node.argument("stride")), w.stride_height, w.stride_width);
  read(*read_integers(node.argument("padding")), w.pad_height, w.pad_width);
  read(*read_integers(node.argument("dilation")), w.dilation_height, w.dilation_width);
  return call;
}

const Argument& conv_input(const Node& node) {
  return node.argument(node.op.argument_index("input") >= 0 ? "input" : "x");
}

std::string refuse_scattered(const Node& node) {
  const std::vector<int64_t> stride = *read_integers(node.argument("stride"));
  for (const int64_t number : stride) {
    if (number < 1 || number > 64) return "its stride is above 64 where pixels spread";
  }
  return {};
}

int64_t groups_of(const Node& node) { return *node.argument("groups").get<int64_t>(); }

WindowFields read_window_fields(const Node& node, const std::vector<int64_t>& weight) {
  const auto read = [&](std::string_view name) {
    return spread(*read_integers(node.argument(name)), weight.size() - 2);
  };
  WindowFields window;
  window.kernel.assign(weight.begin() + 2, weight.end());
  window.stride = read("stride"), window.padding = read("padding"), window.dilation = read("dilation");
  if (const size_t spatial = window.kernel.size(); window.padding.size() == 2 * spatial) {
    const auto middle = window.padding.begin() + static_cast<std::ptrdiff_t>(spatial);
    window.padding_end.assign(middle, window.padding.end());
    window.padding.erase(middle, window.padding.end());
  }
  window.groups = groups_of(node);
  return window;
}

WindowFields read_window_fields(const Node& node, const at::Tensor& weight) {
  return read_window_fields(node, weight.sizes().vec());
}

WindowFields read_pool_window(const Node& node, size_t spatial) {
  const auto read = [&](std::string_view name) { return spread(*read_integers(node.argument(name)), spatial); };
  WindowFields window;
  window.kernel = read("kernel_size"), window.padding = read("padding");
  window.stride = read_integers(node.argument("stride"))->empty() ? window.kernel : read("stride");
  if (node.op.argument_index("dilation") >= 0) window.dilation = read("dilation");
  return window;
}

AverageFields read_average(const Node& node, size_t spatial) {
  AverageFields average;
  average.counts_padding = *node.argument("count_include_pad").get<bool>();
  if (spatial == 2 && !node.argument("divisor_override").is_none()) {
    average.divisor = *node.argument("divisor_override").get<int64_t>();
  }
  return average;
}

}  // namespace lissome
