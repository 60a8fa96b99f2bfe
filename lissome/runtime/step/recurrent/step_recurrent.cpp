// lstm and gru with weights of f32, bf16 (lstm_bf16) and s8 (lstm_u8s8): operands gates (what the inputs contribute,
// [.., .., directions * gates * size]), packed weights, bias of the recurrent product or -1, h0, for lstm c0 (else -1),
// for s8 the scales and sums of the weights; results y, hn, and for lstm cn. Attributes: size, directions, batch_first
// (gates and y are [batch, steps, ..] instead of [steps, batch, ..]).
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_rules.h"

namespace lissome {
namespace {

constexpr int64_t kMostUnits = 1 << 20;

constexpr ValueRule kGates = {"gates", {Dtype::f32}};
constexpr ValueRule kBias = {"bias", {Dtype::f32}, ValueLayout::row_major, Presence::optional};
constexpr ValueRule kNoBias = {"bias", {}, ValueLayout::row_major, Presence::absent};  // that of an LSTM is in its gates
constexpr ValueRule kH0 = {"h0", {Dtype::f32}};
constexpr ValueRule kC0 = {"c0", {Dtype::f32}};
constexpr ValueRule kNoC0 = {"c0", {}, ValueLayout::row_major, Presence::absent};
constexpr ValueRule kScales = {"scales", {Dtype::f32}};
constexpr ValueRule kSums = {"weight_sums", {Dtype::i32}};
constexpr ValueRule weight_rule(Dtype dtype) { return {"weight", {dtype}}; }

constexpr ValueRule kLstmOperands[] = {kGates, weight_rule(Dtype::f32), kNoBias, kH0, kC0};
constexpr ValueRule kLstmBf16Operands[] = {kGates, weight_rule(Dtype::bf16), kNoBias, kH0, kC0};
constexpr ValueRule kLstmU8S8Operands[] = {kGates, weight_rule(Dtype::i8), kNoBias, kH0, kC0, kScales, kSums};
constexpr ValueRule kGruOperands[] = {kGates, weight_rule(Dtype::f32), kBias, kH0, kNoC0};
constexpr ValueRule kGruBf16Operands[] = {kGates, weight_rule(Dtype::bf16), kBias, kH0, kNoC0};
constexpr ValueRule kGruU8S8Operands[] = {kGates, weight_rule(Dtype::i8), kBias, kH0, kNoC0, kScales, kSums};
constexpr ValueRule kLstmResults[] = {{"y", {Dtype::f32}}, {"hn", {Dtype::f32}}, {"cn", {Dtype::f32}}};
constexpr ValueRule kGruResults[] = {{"y", {Dtype::f32}}, {"hn", {Dtype::f32}}};
constexpr AttributeRule kRecurrentAttributes[] = {
    integer_rule("size", 1, kMostUnits, true),
    integer_rule("directions", 1, 2, true),
    flag_rule("batch_first"),
};

constexpr StepSchema kRecurrentSchemas[] = {
    {"lstm", kLstmOperands, kLstmResults, kRecurrentAttributes},
    {"lstm_bf16", kLstmBf16Operands, kLstmResults, kRecurrentAttributes},
    {"lstm_u8s8", kLstmU8S8Operands, kLstmResults, kRecurrentAttributes},
    {"gru", kGruOperands, kGruResults, kRecurrentAttributes},
    {"gru_bf16", kGruBf16Operands, kGruResults, kRecurrentAttributes},
    {"gru_u8s8", kGruU8S8Operands, kGruResults, kRecurrentAttributes},
};

// Sizes and strides, and that all but the weights fit them.
RecurrentSteps read_steps(StepBinder& binder, int64_t gate_count) {
  const bool lstm = gate_count == 4;
  const PlacedValue& gates = binder.operand(0);
  RecurrentSteps call;
  call.size = binder.attributes().integer("size"), call.directions = binder.attributes().integer("directions");
  const bool batch_first = binder.attributes().integer("batch_first", 0) != 0;
  binder.require_product({call.directions * (gate_count * call.size + kLinearPanel), call.size + kLinearPanel, 4});
  binder.require(gates.sizes.size() == 3, "gates must have 3 dimensions");
  call.steps = gates.sizes[batch_first ? 1 : 0], call.batch = gates.sizes[batch_first ? 0 : 1];
  const int64_t wide = call.directions * gate_count * call.size, narrow = call.directions * call.size;
  const Sizes state = {call.directions, call.batch, call.size};
  binder.require_sizes(gates, {gates.sizes[0], gates.sizes[1], wide});
  if (binder.has_operand(2)) binder.require_sizes(binder.operand(2), {wide});
  binder.require_sizes(binder.operand(3), state);
  binder.require_sizes(binder.result(0), {gates.sizes[0], gates.sizes[1], narrow});
  binder.require_sizes(binder.result(1), state);
  if (lstm) {
    binder.require_sizes(binder.operand(4), state);
    binder.require_sizes(binder.result(2), state);
  }
  call.gates_step = batch_first ? wide : call.batch * wide, call.gates_row = batch_first ? call.steps * wide : wide;
  call.y_step = batch_first ? narrow : call.batch * narrow, call.y_row = batch_first ? call.steps * narrow : narrow;
  return call;
}

// `packed` elements of weights a direction.
template <typename Call>
void bind_recurrent(StepBinder& binder, std::string_view kernel, int64_t gate_count, Dtype dtype, int64_t packed) {
  Call call;
  static_cast<RecurrentSteps&>(call) = read_steps(binder, gate_count);
  binder.require_sizes(binder.operand(1), {call.directions * packed});
  binder.set_call(kernel, call);
  binder.point(&RecurrentSteps::gates, binder.operand(0));
  binder.point(&Call::weight, binder.operand(1));
  if (binder.has_operand(2)) binder.point(&RecurrentSteps::bias, binder.operand(2));
  binder.point(&RecurrentSteps::h0, binder.operand(3));
  binder.point(&RecurrentSteps::y, binder.result(0));
  binder.point(&RecurrentSteps::hn, binder.result(1));
  if (gate_count == 4) {
    binder.point(&RecurrentSteps::c0, binder.operand(4));
    binder.point(&RecurrentSteps::cn, binder.result(2));
  }
  const int64_t wide = call.directions * gate_count * call.size;
  const double products = static_cast<double>(call.steps * call.batch) * static_cast<double>(wide * call.size);
  binder.set_products(products, dtype == Dtype::i8 ? Dtype::u8 : dtype);
  binder.set_work(2 * products, 0);
  binder.point_scratch(&RecurrentSteps::scratch,
                       {call.directions, call.batch, recurrent_scratch(gate_count, call.size), 4});
}

void bind_f32(StepBinder& binder, std::string_view kernel, int64_t gates) {
  const int64_t size = read_steps(binder, gates).size;
  bind_recurrent<RecurrentCall>(binder, kernel, gates, Dtype::f32, packed_linear_f32_size(gates * size, size));
}

void bind_bf16(StepBinder& binder, std::string_view kernel, int64_t gates) {
  const int64_t size = read_steps(binder, gates).size;
  bind_recurrent<RecurrentBf16Call>(binder, kernel, gates, Dtype::bf16, packed_linear_bf16_size(gates * size, size));
}

void bind_u8s8(StepBinder& binder, std::string_view kernel, int64_t gates) {
  const RecurrentSteps call = read_steps(binder, gates);
  const int64_t outputs = gates * call.size;
  binder.require_sizes(binder.operand(5), {call.directions * outputs});
  binder.require_sizes(binder.operand(6), {call.directions * outputs});
  bind_recurrent<RecurrentU8S8Call>(binder, kernel, gates, Dtype::i8, packed_u8s8_size(outputs, call.size, {}));
  binder.point(&RecurrentU8S8Call::scales, binder.operand(5));
  binder.point(&RecurrentU8S8Call::weight_sums, binder.operand(6));
}

}  // namespace

std::span<const StepSchema> recurrent_schemas() { return kRecurrentSchemas; }

void bind_lstm(StepBinder& binder) { bind_f32(binder, "lstm", 4); }
void bind_gru(StepBinder& binder) { bind_f32(binder, "gru", 3); }
void bind_lstm_bf16(StepBinder& binder) { bind_bf16(binder, "lstm_bf16", 4); }
void bind_gru_bf16(StepBinder& binder) { bind_bf16(binder, "gru_bf16", 3); }
void bind_lstm_u8s8(StepBinder& binder) { bind_u8s8(binder, "lstm_u8s8", 4); }
void bind_gru_u8s8(StepBinder& binder) { bind_u8s8(binder, "gru_u8s8", 3); }

}  // namespace lissome
