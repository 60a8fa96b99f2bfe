// lstm and gru with weights of f32, bf16 (lstm_bf16) and s8 (lstm_u8s8): operands gates (what the inputs contribute,
// [.., .., directions * gates * size]), packed weights, bias of the recurrent product or -1, h0, for lstm c0 (else -1),
// for s8 the scales and sums of the weights; results y, hn, and for lstm cn. Attributes: size, directions, batch_first
// (gates and y are [batch, steps, ..] instead of [steps, batch, ..]).
#include "lissome/runtime/step_rows.h"

namespace lissome {
namespace {

// Sizes and strides, and that all but the weights fit them.
RecurrentSteps read_steps(StepBinder& binder, int64_t gate_count) {
  const bool lstm = gate_count == 4;
  const PlacedValue& gates = binder.operand(0);
  RecurrentSteps call;
  call.size = binder.attributes().integer("size"), call.directions = binder.attributes().integer("directions");
  const bool batch_first = binder.attributes().integer("batch_first", 0) != 0;
  constexpr int64_t kLargestSize = 1 << 20;
  binder.require(call.size > 0 && call.size <= kLargestSize && (call.directions == 1 || call.directions == 2),
                 "the layer has size ", call.size, " and ", call.directions, " directions");
  binder.require_product({call.directions * (gate_count * call.size + kLinearPanel), call.size + kLinearPanel, 4});
  binder.require(gates.sizes.size() == 3, "gates must have 3 dimensions");
  call.steps = gates.sizes[batch_first ? 1 : 0], call.batch = gates.sizes[batch_first ? 0 : 1];
  const int64_t wide = call.directions * gate_count * call.size, narrow = call.directions * call.size;
  const Sizes state = {call.directions, call.batch, call.size};
  binder.require_dense(gates, Dtype::f32, {gates.sizes[0], gates.sizes[1], wide});
  if (binder.has_operand(2)) binder.require_dense(binder.operand(2), Dtype::f32, {wide});
  binder.require(!lstm || !binder.has_operand(2), "the bias of an LSTM belongs to its gates");
  binder.require_dense(binder.operand(3), Dtype::f32, state);
  binder.require_dense(binder.result(0), Dtype::f32, {gates.sizes[0], gates.sizes[1], narrow});
  binder.require_dense(binder.result(1), Dtype::f32, state);
  if (lstm) {
    binder.require_dense(binder.operand(4), Dtype::f32, state);
    binder.require_dense(binder.result(2), Dtype::f32, state);
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
  binder.require_dense(binder.operand(1), dtype, {call.directions * packed});
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
                       call.directions * call.batch * recurrent_scratch(gate_count, call.size) * 4);
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
  binder.require_dense(binder.operand(5), Dtype::f32, {call.directions * outputs});
  binder.require_dense(binder.operand(6), Dtype::i32, {call.directions * outputs});
  bind_recurrent<RecurrentU8S8Call>(binder, kernel, gates, Dtype::i8, packed_u8s8_size(outputs, call.size, {}));
  binder.point(&RecurrentU8S8Call::scales, binder.operand(5));
  binder.point(&RecurrentU8S8Call::weight_sums, binder.operand(6));
}

}  // namespace

void bind_lstm(StepBinder& binder) { bind_f32(binder, "lstm", 4); }
void bind_gru(StepBinder& binder) { bind_f32(binder, "gru", 3); }
void bind_lstm_bf16(StepBinder& binder) { bind_bf16(binder, "lstm_bf16", 4); }
void bind_gru_bf16(StepBinder& binder) { bind_bf16(binder, "gru_bf16", 3); }
void bind_lstm_u8s8(StepBinder& binder) { bind_u8s8(binder, "lstm_u8s8", 4); }
void bind_gru_u8s8(StepBinder& binder) { bind_u8s8(binder, "gru_u8s8", 3); }

}  // namespace lissome
