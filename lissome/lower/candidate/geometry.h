// The numbers of a convolution or pooling window, from nodes to the attributes of steps.
#pragma once

#include "lissome/kernel.h"
#include "lissome/lower/plan/plan_builder.h"
#include "lissome/runtime/step/pool/average_fields.h"
#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// Empty when stride, padding, dilation and groups are literal.
std::string refuse_geometry(const Node& node);
// Empty when both ends of a dimension are padded alike, which libtorch's kernels ask for.
std::string refuse_uneven_padding(const Node& node);
// Empty when the kernels of phases may spread each pixel over a window of results, as transposed convolutions and the
// gradients of data do; of a node with literal geometry.
std::string refuse_scattered(const Node& node);
// x of aten::convolution, its gradient or one of our forms of it.
const Argument& conv_input(const Node& node);
// Of a node whose geometry is literal.
int64_t groups_of(const Node& node);
// The window of a node with a weight of such sizes: [out, in / groups, spatial...], or [in, out / groups, spatial...]
// when transposed.
WindowFields read_window_fields(const Node& node, const std::vector<int64_t>& weight);
WindowFields read_window_fields(const Node& node, const at::Tensor& weight);
// The window of a pooling node whose numbers are literal.
WindowFields read_pool_window(const Node& node, size_t spatial);
// The divisor of an average pooling.
AverageFields read_average(const Node& node, size_t spatial);
// Whether every channel has a window of its own.
bool is_depthwise(const Node& node, const at::Tensor& weight);
// Whether conv_f32 reads x as it lies, an image whose few channels are planes, with a weight of such sizes: no copy of
// it waits beside the much larger y. On tile registers x must be channels-last.
bool reads_planes(const PlanBuilder& builder, const Node& node, const Argument& x, const std::vector<int64_t>& weight);
// Whether its groups are those of the grouped kernels.
bool has_small_groups(const Node& node, const at::Tensor& weight);
// What packed_conv_bf16_size() reads, for a weight of such sizes, or [in, out / groups, spatial...] when transposed.
ConvBf16Call describe_conv_bf16(const Node& node, const std::vector<int64_t>& weight, bool transposed);
// `numbers` for each of `spatial` dimensions: a single one counts for all.
std::vector<int64_t> spread(std::vector<int64_t> numbers, size_t spatial);

}  // namespace lissome
