// Convolutions in f32 on our own kernels: channels-last in and out; depthwise has a kernel of its own, which may take
// in the 1x1 convolution behind it, and 3x3 windows of stride 1, from and to bf16 too, may go through Winograd, whose
// sums are others: only timing chooses that.
#include <algorithm>

#include "lissome/lower/candidate/conv/conv_candidates.h"
#include "lissome/lower/candidate/conv/conv_constants.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/fuse/fuse_depthwise_steps.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/conv/conv_f32_steps.h"
#include "lissome/runtime/step/depthwise/depthwise_steps.h"
#include "lissome/runtime/step/winograd/winograd_steps.h"

namespace lissome {
namespace {

PlanValueId pack_weight(PlanBuilder& builder, const Node& node, const at::Tensor& tensor) {
  const int64_t groups = *node.argument("groups").get<int64_t>();
  const std::string name =
      builder.program().find_weight(node.argument("weight").value())->name + ".conv_f32." + std::to_string(groups);
  if (builder.has_packed(name)) return builder.find_packed(name);
  const Array weight = share_tensor(tensor);
  const int64_t outputs = weight.sizes[0], inputs = weight.sizes[1];
  const int64_t taps = weight.elements() / (outputs * inputs);
  Array packed = make_array(Dtype::f32, {packed_conv_f32_size(outputs, inputs * groups, groups, taps)});
  pack_conv_f32(weight.data<float>(), outputs, inputs * groups, groups, taps, packed.data<float>());
  return builder.add_packed(name, std::move(packed));
}

PlanValueId pack_winograd(PlanBuilder& builder, const Node& node, const at::Tensor& tensor, int64_t tile) {
  const std::string name =
      builder.program().find_weight(node.argument("weight").value())->name + ".winograd_f32." + std::to_string(tile);
  if (builder.has_packed(name)) return builder.find_packed(name);
  const Array weight = share_tensor(tensor.to(at::kFloat));
  const int64_t outputs = weight.sizes[0], inputs = weight.sizes[1];
  Array packed = make_array(Dtype::f32, {packed_winograd_f32_size(outputs, inputs, tile)});
  pack_winograd_f32(weight.data<float>(), outputs, inputs, tile, packed.data<float>());
  return builder.add_packed(name, std::move(packed));
}

Dtype dtype_of(const PlanBuilder& builder, const Node& node) { return builder.type(node.result()).dtype; }

const at::Tensor& weight_of(const PlanBuilder& builder, const Node& node) {
  return *builder.constant(node.argument("weight").value());
}

// Sets all values that kernels of convolutions share but for the packed weight. x and y are f32 or bf16.
void set_values(PlanBuilder& builder, const Node& node, ConvValues& step, Format x_format = Format::channels_last) {
  const Argument& bias = node.argument("bias");
  step.window = read_window_fields(node, weight_of(builder, node));
  step.x = {builder.use_dense(conv_input(node), node, x_format)};
  step.bias = {dtype_of(builder, node) == Dtype::f32 ? builder.use(bias) : builder.use_f32(bias)};
  if (!node.is("aten::convolution")) {
    step.activation = translate_activation(*node.argument("act").get<std::string>());
    step.residual = {builder.use_dense(node.argument("residual"), node, Format::channels_last)};
  }
  step.y = {builder.make(node.result(), Storage::arena, Format::channels_last)};
}

void emit_winograd(PlanBuilder& builder, const Node& node, int64_t tile) {
  const at::Tensor& weight = weight_of(builder, node);
  WinogradF32Step step;
  step.tile = tile;
  step.zeros = {pack_zeros(builder, dtype_of(builder, node), weight.size(1))};
  step.weight = {pack_winograd(builder, node, weight, tile)};
  set_values(builder, node, step);
  builder.add_step(step, node);
}

bool all_are(const Argument& numbers, int64_t wanted) {
  const std::vector<int64_t> values = *read_integers(numbers);
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

template <typename Step>
Step make_depthwise(PlanBuilder& builder, const Node& node) {
  Step step;
  step.weight = {pack_taps(builder, node)};
  set_values(builder, node, step);
  return step;
}

bool is_product_of_pixels(const PlanBuilder& builder, const Node& node) {
  const at::Tensor& weight = weight_of(builder, node);
  const auto window = weight.sizes().slice(2);
  return std::all_of(window.begin(), window.end(), [](int64_t size) { return size == 1; }) &&
         all_are(node.argument("stride"), 1) && all_are(node.argument("padding"), 0) &&
         node.argument("groups") == Argument(int64_t{1});
}

// At the smallest sizes that the program allows.
int64_t count_least_elements(const PlanBuilder& builder, ValueId value) {
  DimensionBindings sizes;
  for (const NamedDimension& dimension : builder.program().dimensions)
    sizes[dimension.name] = std::max<int64_t>(dimension.minimum, 1);
  int64_t count = 1;
  for (const Dimension& size : builder.type(value).sizes) count *= size.evaluate(sizes);
  return count;
}

}  // namespace

std::string refuse_conv_f32(const PlanBuilder& builder, const Node& node) {
  const bool fused = !node.is("aten::convolution");
  const Argument& weight = node.argument("weight");
  const at::Tensor* tensor = weight.is_value() ? builder.constant(weight.value()) : nullptr;
  if (!tensor) return "the weight is computed";
  if (tensor->scalar_type() != at::kFloat) return "the weight is not f32";
  if (tensor->dim() != 3 && tensor->dim() != 4) return "it has neither one nor two spatial dimensions";
  if (node.argument("transposed") != Argument(false)) return "it is transposed";
  if (tensor->numel() == 0) return "the weight is empty";
  const std::string refusal =
      first_refusal({refuse_geometry(node), refuse_tensor(builder, conv_input(node), Dtype::f32),
                     refuse_optional(builder, node.argument("bias"), Dtype::f32),
                     refuse_tensor(builder, Argument(node.result()), Dtype::f32),
                     fused ? refuse_activation(node.argument("act")) : std::string(),
                     fused ? refuse_residual(builder, node, node.argument("residual")) : std::string()});
  if (!refusal.empty()) return refusal;
  if (builder.type(conv_input(node).value()).sizes.size() != static_cast<size_t>(tensor->dim()))
    return "x has no batch";
  return {};
}

namespace {

ConvF32Step make_conv(PlanBuilder& builder, const Node& node) {
  const at::Tensor& weight = weight_of(builder, node);
  ConvF32Step step;
  step.finite_weight = is_finite(weight);
  step.weight = {pack_weight(builder, node, weight)};
  step.zeros = {pack_zeros(builder, Dtype::f32, weight.size(1) * groups_of(node))};
  // Bands are few pixels, each of which reads all of the weight again: one of 576 KiB, of the patches of a ViT, made
  // the whole model 5 % slower.
  constexpr int64_t kMostWeightBytes = 128 * 1024;
  step.planes = static_cast<int64_t>(weight.nbytes()) <= kMostWeightBytes &&
                reads_planes(builder, node, conv_input(node), weight.sizes().vec());
  set_values(builder, node, step, step.planes ? Format::row_major : Format::channels_last);
  return step;
}

}  // namespace

void emit_conv_f32(PlanBuilder& builder, const Node& node) {
  const at::Tensor& weight = weight_of(builder, node);
  if (is_depthwise(node, weight)) return builder.add_step(make_depthwise<DepthwiseF32Step>(builder, node), node);
  if (has_small_groups(node, weight)) return builder.add_step(make_depthwise<GroupedF32Step>(builder, node), node);
  builder.add_step(make_conv(builder, node), node);
}

namespace {

// What joins a convolution with the node behind it asks for: that one alone reads the result, and nothing is added.
std::string refuse_joining(const PlanBuilder& builder, const Node& node) {
  if (!node.is("aten::convolution") && !node.argument("residual").is_none()) return "it adds a residual";
  if (leaves_program(builder.program(), node.result())) return "its result leaves the program";
  const size_t readers = find_readers(builder.program(), node.result()).size();
  return readers == 1 ? "" : "its result has " + std::to_string(readers) + " readers";
}

}  // namespace

std::string refuse_separable_f32(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_conv_f32(builder, node);
  if (!refusal.empty()) return refusal;
  if (!is_depthwise(node, weight_of(builder, node))) return "it is not depthwise";
  if (const std::string refused = refuse_joining(builder, node); !refused.empty()) return refused;
  const Node& reader = *find_readers(builder.program(), node.result()).front();
  if (!reader.is("aten::convolution") && !reader.is("lissome::conv_act")) return "no convolution reads its result";
  if (conv_input(reader) != Argument(node.result()) || !refuse_conv_f32(builder, reader).empty())
    return "what reads its result is not for conv_f32";
  return is_product_of_pixels(builder, reader) ? "" : "no 1x1 convolution of stride 1 reads its result";
}

namespace {

// Measured on layers of MobileNetV2 at batch 1 and 8, on one core of a Zen 4 with 1 MiB of second-level cache: joined,
// those whose result between is larger take 0.74 to 1.00 of the time, less where images are larger; the others 0.97 to
// 1.03. Tile registers multiply faster than what is joined does.
std::string refuse_small_result(const PlanBuilder& builder, const Node& node) {
  constexpr int64_t kLeastBytes = 1024 * 1024;
  if (can_run(Isa::amx)) return "products run on tile registers";
  const int64_t bytes = count_least_elements(builder, node.result()) * static_cast<int64_t>(sizeof(float));
  return bytes > kLeastBytes ? "" : "its result may stay in the second level of cache";
}

// Longer windows have a form that takes two lines of an image at once, which 31 x 31 needs more than what joining saves
// (9.0 ms joined, 6.9 apart).
std::string refuse_long_window(const PlanBuilder& builder, const Node& depthwise) {
  constexpr int64_t kLongest = 7;
  const at::Tensor& weight = weight_of(builder, depthwise);
  return weight.size(weight.dim() - 1) <= kLongest ? "" : "the window is longer than " + std::to_string(kLongest);
}

}  // namespace

std::string refuse_large_separable_f32(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_separable_f32(builder, node);
  if (!refusal.empty()) return refusal;
  return first_refusal({refuse_small_result(builder, node), refuse_long_window(builder, node)});
}

void emit_separable_f32(PlanBuilder& builder, const Node& node) {
  builder.add_step(mark_joining(make_depthwise<DepthwiseF32Step>(builder, node)), node);
}

std::string refuse_inverted_f32(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_conv_f32(builder, node);
  if (!refusal.empty()) return refusal;
  if (!is_product_of_pixels(builder, node)) return "it is no 1x1 convolution of stride 1";
  if (const std::string refused = refuse_joining(builder, node); !refused.empty()) return refused;
  const Node& reader = *find_readers(builder.program(), node.result()).front();
  const bool reads = (reader.is("aten::convolution") || reader.is("lissome::conv_act")) &&
                     conv_input(reader) == Argument(node.result());
  return reads && refuse_separable_f32(builder, reader).empty()
             ? ""
             : "no depthwise convolution with a 1x1 behind it reads its result";
}

std::string refuse_large_inverted_f32(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_inverted_f32(builder, node);
  if (!refusal.empty()) return refusal;
  const Node& depthwise = *find_readers(builder.program(), node.result()).front();
  return first_refusal({refuse_small_result(builder, node), refuse_long_window(builder, depthwise)});
}

void emit_inverted_f32(PlanBuilder& builder, const Node& node) {
  builder.add_step(mark_joining(make_conv(builder, node)), node);
}

std::string refuse_winograd_form(const PlanBuilder& builder, const Node& node) {
  constexpr int64_t kLeastChannels = 16;  // below, the transforms cost more than they save
  const at::Tensor& weight = weight_of(builder, node);
  if (weight.dim() != 4 || weight.size(2) != 3 || weight.size(3) != 3) return "the window is not 3x3";
  if (!all_are(node.argument("stride"), 1) || !all_are(node.argument("dilation"), 1)) return "it is strided or dilated";
  if (node.argument("groups") != Argument(int64_t{1})) return "it has groups";
  if (weight.size(0) < kLeastChannels || weight.size(1) < kLeastChannels) return "it has few channels";
  return {};
}

std::string refuse_winograd_f32(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_conv_f32(builder, node);
  return refusal.empty() ? refuse_winograd_form(builder, node) : refusal;
}

std::string refuse_winograd_bf16(const PlanBuilder& builder, const Node& node) {
  const std::string refusal = refuse_conv_bf16(builder, node);
  if (!refusal.empty()) return refusal;
  return node.argument("transposed") == Argument(false) ? refuse_winograd_form(builder, node) : "it is transposed";
}

void emit_winograd_2x2(PlanBuilder& builder, const Node& node) { emit_winograd(builder, node, 2); }
void emit_winograd_4x4(PlanBuilder& builder, const Node& node) { emit_winograd(builder, node, 4); }

}  // namespace lissome
