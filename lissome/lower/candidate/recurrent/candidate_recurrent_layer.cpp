// One layer of LSTM or GRU whose inputs are multiplied already (lissome::lstm_layer, gru_layer), with weights of f32,
// bf16 or s8: a single step.
#include "lissome/lower/candidate/recurrent/recurrent_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/recurrent/recurrent_steps.h"

namespace lissome {
namespace {

bool is_lstm(const Node& node) { return node.is("lissome::lstm_layer"); }
int64_t count_gates(const Node& node) { return is_lstm(node) ? 4 : 3; }

const Dtype kWeightDtypes[] = {Dtype::f32, Dtype::bf16, Dtype::i8};

// The weight of all directions, packed one after the other as `pack(rows, to, direction)` does it.
template <typename Item, typename Pack>
PlanValueId pack_directions(PlanBuilder& builder, const std::string& name, const Array& weight, int64_t packed,
                            const Pack& pack) {
  if (builder.has_packed(name)) return builder.find_packed(name);
  const int64_t directions = weight.sizes[0], rows = weight.sizes[1] * weight.sizes[2];
  Array all = make_array(weight.dtype, {directions * packed});
  for (int64_t d = 0; d < directions; ++d) pack(weight.data<Item>() + d * rows, all.data<Item>() + d * packed, d);
  return builder.add_packed(name, std::move(all));
}

struct PackedS8 {
  PlanValueId weight, sums;
};

PackedS8 pack_s8(PlanBuilder& builder, const std::string& name, const Array& weight) {
  const int64_t outputs = weight.sizes[1], size = weight.sizes[2];
  const std::string sums_name = name + ".sums";
  if (!builder.has_packed(name)) {
    Array sums = make_array(Dtype::i32, {weight.sizes[0] * outputs});
    pack_directions<int8_t>(builder, name, weight, packed_u8s8_size(outputs, size, {}),
                            [&](const int8_t* rows, int8_t* to, int64_t d) {
                              pack_u8s8(rows, outputs, size, {}, to, sums.data<int32_t>() + d * outputs);
                            });
    builder.add_packed(sums_name, std::move(sums));
  }
  return {builder.find_packed(name), builder.find_packed(sums_name)};
}

// The scales of all directions in one row.
PlanValueId flatten_scales(PlanBuilder& builder, const Argument& weight_scales) {
  const std::string name = builder.program().find_weight(weight_scales.value())->name + ".flat";
  if (builder.has_packed(name)) return builder.find_packed(name);
  const Array scales = share_tensor(*builder.constant(weight_scales.value()));
  Array flat = make_array(Dtype::f32, {scales.elements()});
  std::copy_n(scales.data<float>(), scales.elements(), flat.data<float>());
  return builder.add_packed(name, std::move(flat));
}

PlanValueId pack_bf16(PlanBuilder& builder, const std::string& name, const Array& weight) {
  const int64_t outputs = weight.sizes[1], size = weight.sizes[2];
  return pack_directions<uint16_t>(
      builder, name, weight, packed_linear_bf16_size(outputs, size),
      [&](const uint16_t* rows, uint16_t* to, int64_t) { pack_linear_bf16(rows, outputs, size, size, 1, to); });
}

PlanValueId pack_f32(PlanBuilder& builder, const std::string& name, const Array& weight) {
  const int64_t outputs = weight.sizes[1], size = weight.sizes[2];
  return pack_directions<float>(
      builder, name, weight, packed_linear_f32_size(outputs, size),
      [&](const float* rows, float* to, int64_t) { pack_linear_f32(rows, outputs, size, size, 1, to); });
}

std::string refuse_weights(const PlanBuilder& builder, const Node& node) {
  const Argument& weight = node.argument("weight");
  const at::Tensor* tensor = weight.is_value() ? builder.constant(weight.value()) : nullptr;
  if (tensor == nullptr) return "the weight is computed";
  const Dtype dtype = share_tensor(*tensor).dtype;
  if (std::find(std::begin(kWeightDtypes), std::end(kWeightDtypes), dtype) == std::end(kWeightDtypes))
    return "the weight is " + std::string(dtype_name(dtype));
  const std::string refusal = refuse_weight(builder, weight, dtype, 3);
  if (!refusal.empty() || dtype != Dtype::i8) return refusal;
  return refuse_weight(builder, node.argument("weight_scales"), Dtype::f32, 2);
}

}  // namespace

std::string refuse_recurrent_layer(const PlanBuilder& builder, const Node& node) {
  const Argument &gates = node.argument("gates"), &h0 = node.argument("h0");
  const std::string refusal = first_refusal(
      {refuse_weights(builder, node), refuse_tensor(builder, gates, Dtype::f32), refuse_tensor(builder, h0, Dtype::f32),
       is_lstm(node)                     ? refuse_tensor(builder, node.argument("c0"), Dtype::f32)
       : node.argument("bias").is_none() ? std::string()
                                         : refuse_weight(builder, node.argument("bias"), Dtype::f32, 1)});
  if (!refusal.empty()) return refusal;
  if (!node.argument("batch_first").get<bool>()) return "batch_first is computed";
  const at::Tensor& weight = *builder.constant(node.argument("weight").value());
  const std::vector<Dimension>&sizes = builder.type(gates.value()).sizes, &states = builder.type(h0.value()).sizes;
  if (weight.size(2) == 0 || sizes.size() != 3 || states.size() != 3 ||
      weight.size(1) != count_gates(node) * weight.size(2) ||
      !(sizes[2] == Dimension(weight.size(0) * weight.size(1))) || !(states[2] == Dimension(weight.size(2)))) {
    return "the weights have other sizes than the layer";
  }
  return {};
}

namespace {

template <typename Step>
void emit_layer(PlanBuilder& builder, const Node& node) {
  const ValueId id = node.argument("weight").value();
  const Array weight = share_tensor(*builder.constant(id));
  const std::string name = builder.program().find_weight(id)->name + ".recurrent";
  Step step;
  step.form = {weight.sizes[2], weight.sizes[0], *node.argument("batch_first").get<bool>()};
  step.gates = {builder.use_dense(node.argument("gates"), node)};
  if constexpr (requires { step.bias; }) step.bias = {builder.use(node.argument("bias"))};
  step.h0 = {builder.use_dense(node.argument("h0"), node)};
  if constexpr (requires { step.c0; }) step.c0 = {builder.use_dense(node.argument("c0"), node)};
  if constexpr (requires { step.weight_sums; }) {
    step.scales = {flatten_scales(builder, node.argument("weight_scales"))};
    const PackedS8 packed = pack_s8(builder, name, weight);
    step.weight = {packed.weight}, step.weight_sums = {packed.sums};
  } else {
    step.weight = {weight.dtype == Dtype::bf16 ? pack_bf16(builder, name, weight) : pack_f32(builder, name, weight)};
  }
  step.y = {builder.make(node.results.at(0))};
  step.hn = {builder.make(node.results.at(1))};
  if constexpr (requires { step.cn; }) step.cn = {builder.make(node.results.at(2))};
  builder.add_step(step, node);
}

}  // namespace

void emit_recurrent_layer(PlanBuilder& builder, const Node& node) {
  const Dtype dtype = share_tensor(*builder.constant(node.argument("weight").value())).dtype;
  if (is_lstm(node)) {
    if (dtype == Dtype::bf16) return emit_layer<LstmBf16Step>(builder, node);
    if (dtype == Dtype::i8) return emit_layer<LstmU8S8Step>(builder, node);
    return emit_layer<LstmStep>(builder, node);
  }
  if (dtype == Dtype::bf16) return emit_layer<GruBf16Step>(builder, node);
  if (dtype == Dtype::i8) return emit_layer<GruU8S8Step>(builder, node);
  emit_layer<GruStep>(builder, node);
}

}  // namespace lissome
