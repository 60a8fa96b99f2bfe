// Transposed convolutions in f32. One group: a linear layer gives each pixel's products with every tap of the kernel,
// col2im gathers what falls on each pixel of the result. Depthwise has a kernel of its own. Groups of several
// channels: conv_data_f32, a plain convolution for each phase of the stride.
#include "lissome/lower/candidate/conv/conv_candidates.h"
#include "lissome/lower/candidate/conv/conv_constants.h"
#include "lissome/lower/candidate/geometry.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/conv/col2im_steps.h"
#include "lissome/runtime/step/conv/conv_gradient_steps.h"
#include "lissome/runtime/step/depthwise/depthwise_steps.h"
#include "lissome/runtime/step/gemm/linear_steps.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {
namespace {

// Outputs of the linear layer: taps outermost, so that the channels of one tap lie beside each other.
PlanValueId pack_columns_weight(PlanBuilder& builder, const Node& node, const at::Tensor& tensor) {
  const std::string name = builder.program().find_weight(node.argument("weight").value())->name + ".transposed_f32";
  if (builder.has_packed(name)) return builder.find_packed(name);
  const Array weight = share_tensor(tensor);  // [inputs, channels, taps...]
  const int64_t inputs = weight.sizes[0], channels = weight.sizes[1];
  const int64_t taps = weight.elements() / (inputs * channels);
  std::vector<float> rows(static_cast<size_t>(weight.elements()));
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t k = 0; k < inputs; ++k) {
        rows[static_cast<size_t>((tap * channels + c) * inputs + k)] =
            weight.data<float>()[(k * channels + c) * taps + tap];
      }
    }
  }
  Array packed = make_array(Dtype::f32, {packed_linear_f32_size(taps * channels, inputs)});
  pack_linear_f32(rows.data(), taps * channels, inputs, inputs, 1, packed.data<float>());
  return builder.add_packed(name, std::move(packed));
}

// Of the convolution whose data gradient this is: from the channels of the result to those of x.
PlanValueId pack_phases(PlanBuilder& builder, const Node& node, const at::Tensor& tensor) {
  const Array weight = share_tensor(tensor);
  const ConvBf16Call described = describe_conv_bf16(node, weight.sizes, true);
  PackConvF32Call call;
  call.in_channels = described.out_channels, call.out_channels = described.in_channels;
  call.groups = described.groups, call.window = described.window, call.packing = ConvPacking::data;
  const Window& w = call.window;
  const std::string name = builder.program().find_weight(node.argument("weight").value())->name + ".transposed_f32." +
                           std::to_string(call.groups) + name_phases(w);
  if (builder.has_packed(name)) return builder.find_packed(name);
  Array packed = make_array(Dtype::f32, {packed_conv_data_f32_size(call.out_channels, call.in_channels, call.groups,
                                                                   w.kernel_height * w.kernel_width)});
  call.weight = weight.data<float>(), call.packed = packed.data<float>();
  find_kernel("pack_conv_f32").function(&call, 0, 1);
  return builder.add_packed(name, std::move(packed));
}

// x with the channels last, as rows of pixels: a view.
PlanValueId view_pixels(PlanBuilder& builder, const Node& node, const std::vector<Dimension>& sizes) {
  std::vector<int64_t> dims = {0};
  for (size_t i = 2; i < sizes.size(); ++i) dims.push_back(static_cast<int64_t>(i));
  dims.push_back(1);
  std::vector<Dimension> ordered;
  for (const int64_t dim : dims) ordered.push_back(sizes[static_cast<size_t>(dim)]);
  const ValueId x = conv_input(node).value();
  const ValueId pixels = builder.add_value(builder.program().value(x).name + ".pixels", Dtype::f32, ordered);
  ViewStep order;
  order.x = {builder.use_dense(x, node, Format::channels_last)};
  order.form = "permute";
  order.dims = std::move(dims);
  return builder.add_view(std::move(order), node, pixels);
}

}  // namespace

std::string refuse_transposed(const PlanBuilder& builder, const Node& node) {
  const bool fused = !node.is("aten::convolution");
  if (node.argument("transposed") != Argument(true)) return "it is not transposed";
  const Argument& weight = node.argument("weight");
  const at::Tensor* tensor = weight.is_value() ? builder.constant(weight.value()) : nullptr;
  if (!tensor) return "the weight is computed";
  if (tensor->scalar_type() != at::kFloat) return "the weight is not f32";
  if (tensor->dim() != 3 && tensor->dim() != 4) return "it has neither one nor two spatial dimensions";
  if (tensor->numel() == 0) return "the weight is empty";
  const std::string refusal = first_refusal(
      {refuse_geometry(node), refuse_tensor(builder, conv_input(node), Dtype::f32),
       refuse_optional(builder, node.argument("bias"), Dtype::f32),
       refuse_tensor(builder, Argument(node.result()), Dtype::f32),
       fused ? refuse_activation(node.argument("act")) : std::string(),
       fused && !node.argument("residual").is_none() ? std::string("it adds a residual") : std::string()});
  if (!refusal.empty()) return refusal;
  if (builder.type(conv_input(node).value()).sizes.size() != static_cast<size_t>(tensor->dim()))
    return "x has no batch";
  return refuse_scattered(node);
}

namespace {

// The window and the activation, which all kernels of transposed convolutions have.
template <typename Step>
Step start_step(const Node& node, const at::Tensor& weight) {
  Step step;
  step.window = read_window_fields(node, weight);
  if (!node.is("aten::convolution")) {
    step.activation = translate_activation(*node.argument("act").get<std::string>());
  }
  return step;
}

// One group.
void emit_columns(PlanBuilder& builder, const Node& node, PlanValueId result, const at::Tensor& weight) {
  const int64_t outputs = weight.numel() / weight.size(0);
  const std::vector<Dimension> sizes = builder.type(conv_input(node).value()).sizes;
  std::vector<Dimension> column_sizes = {sizes[0]};
  column_sizes.insert(column_sizes.end(), sizes.begin() + 2, sizes.end());
  column_sizes.emplace_back(outputs);
  const ValueId columns =
      builder.add_value(builder.program().value(node.result()).name + ".columns", Dtype::f32, column_sizes);
  LinearF32Step product;
  product.outputs = outputs;
  product.x = {view_pixels(builder, node, sizes)};
  product.weight = {pack_columns_weight(builder, node, weight)};
  product.y = {builder.make(columns)};
  builder.add_step(product, node);
  auto fold = start_step<Col2ImStep>(node, weight);
  fold.columns = {product.y.value};
  fold.bias = {builder.use(node.argument("bias"))};
  fold.y = {result};
  builder.add_step(fold, node);
}

void emit_depthwise(PlanBuilder& builder, const Node& node, PlanValueId result, const at::Tensor& weight) {
  auto step = start_step<DepthwiseTransposedF32Step>(node, weight);
  step.bias = {builder.use(node.argument("bias"))};
  step.x = {builder.use_dense(conv_input(node), node, Format::channels_last)};
  step.weight = {pack_taps(builder, node)};
  step.y = {result};
  builder.add_step(step, node);
}

void emit_phases(PlanBuilder& builder, const Node& node, PlanValueId result, const at::Tensor& weight) {
  auto step = start_step<ConvDataF32Step>(node, weight);
  step.bias = {builder.use(node.argument("bias"))};
  step.dy = {builder.use_dense(conv_input(node), node, Format::channels_last)};
  step.weight = {pack_phases(builder, node, weight)};
  step.zeros = {pack_zeros(builder, Dtype::f32, weight.size(0))};
  step.dx = {result};
  builder.add_step(step, node);
}

}  // namespace

void emit_transposed(PlanBuilder& builder, const Node& node) {
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  const PlanValueId result = builder.make(node.result(), Storage::arena, Format::channels_last);
  const bool is_one_group = groups_of(node) == 1;
  const auto emit = is_one_group ? emit_columns : is_depthwise(node, weight) ? emit_depthwise : emit_phases;
  emit(builder, node, result, weight);
}

}  // namespace lissome
