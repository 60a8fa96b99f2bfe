#include "lissome/lower/candidate/conv/conv_constants.h"

namespace lissome {

PlanValueId pack_zeros(PlanBuilder& builder, Dtype dtype, int64_t channels) {
  const std::string name = "zeros." + std::string(dtype_name(dtype)) + "." + std::to_string(channels);
  return builder.has_packed(name) ? builder.find_packed(name) : builder.add_packed(name, make_array(dtype, {channels}));
}

PlanValueId pack_taps(PlanBuilder& builder, const Node& node) {
  const ValueId weight = node.argument("weight").value();
  const std::string name =
      builder.program().find_weight(weight)->name + ".depthwise_" + std::string(dtype_name(builder.type(weight).dtype));
  if (builder.has_packed(name)) return builder.find_packed(name);
  const at::Tensor wide = builder.constant(weight)->to(at::kFloat).contiguous();
  Array packed = make_array(Dtype::f32, {wide.numel()});
  const int64_t channels = wide.size(0), group = wide.size(1), taps = wide.numel() / (channels * group);
  pack_depthwise(wide.const_data_ptr<float>(), channels, group, taps, packed.data<float>());
  return builder.add_packed(name, std::move(packed));
}

PlanValueId pack_group_pairs(PlanBuilder& builder, const Node& node) {
  const ValueId weight = node.argument("weight").value();
  const std::string name = builder.program().find_weight(weight)->name + ".grouped_bf16";
  if (builder.has_packed(name)) return builder.find_packed(name);
  const at::Tensor dense = builder.constant(weight)->contiguous();
  Array packed = make_array(Dtype::bf16, {dense.numel()});
  const int64_t channels = dense.size(0), group = dense.size(1), taps = dense.numel() / (channels * group);
  pack_grouped_bf16(static_cast<const uint16_t*>(dense.const_data_ptr()), channels, group, taps,
                    packed.data<uint16_t>());
  return builder.add_packed(name, std::move(packed));
}

std::string name_phases(const Window& w) {
  std::string name;
  for (const int64_t number :
       {w.stride_height, w.stride_width, w.pad_height, w.pad_width, w.dilation_height, w.dilation_width}) {
    name += "." + std::to_string(number);
  }
  return name;
}

}  // namespace lissome
