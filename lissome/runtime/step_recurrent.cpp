// lstm and gru: operands gates (what the inputs contribute, [.., .., directions * gates * size]), packed weights, bias
// of the recurrent product or -1, h0, and for lstm c0; results y, hn, and for lstm cn. Attributes: size, directions,
// batch_first (gates and y are [batch, steps, ..] instead of [steps, batch, ..]).
#include "lissome/runtime/step_rows.h"

namespace lissome {
namespace {

void bind_recurrent(StepBinder& binder, std::string_view kernel, int64_t gate_count) {
  const bool lstm = gate_count == 4;
  const PlacedValue& gates = binder.operand(0);
  RecurrentCall call;
  call.size = binder.attributes().integer("size"), call.directions = binder.attributes().integer("directions");
  const bool batch_first = binder.attributes().integer("batch_first", 0) != 0;
  constexpr int64_t kLargestSize = 1 << 20;
  binder.require(call.size > 0 && call.size <= kLargestSize && (call.directions == 1 || call.directions == 2),
                 "the layer has size ", call.size, " and ", call.directions, " directions");
  binder.require_product({call.directions * (gate_count * call.size + kLinearPanel), call.size, 4});
  binder.require(gates.sizes.size() == 3, "gates must have 3 dimensions");
  call.steps = gates.sizes[batch_first ? 1 : 0], call.batch = gates.sizes[batch_first ? 0 : 1];
  const int64_t wide = call.directions * gate_count * call.size, narrow = call.directions * call.size;
  const Sizes state = {call.directions, call.batch, call.size};
  binder.require_dense(gates, Dtype::f32, {gates.sizes[0], gates.sizes[1], wide});
  binder.require_dense(binder.operand(1), Dtype::f32,
                       {call.directions * packed_linear_f32_size(gate_count * call.size, call.size)});
  if (binder.has_operand(2)) binder.require_dense(binder.operand(2), Dtype::f32, {wide});
  binder.require(!lstm || !binder.has_operand(2), "the bias of an LSTM belongs to its gates");
  binder.require_dense(binder.operand(3), Dtype::f32, state);
  binder.require_dense(binder.result(0), Dtype::f32, {gates.sizes[0], gates.sizes[1], narrow});
  binder.require_dense(binder.result(1), Dtype::f32, state);
  call.gates_step = batch_first ? wide : call.batch * wide, call.gates_row = batch_first ? call.steps * wide : wide;
  call.y_step = batch_first ? narrow : call.batch * narrow, call.y_row = batch_first ? call.steps * narrow : narrow;
  binder.set_call(kernel, call);
  binder.point(&RecurrentCall::gates, gates);
  binder.point(&RecurrentCall::weight, binder.operand(1));
  if (binder.has_operand(2)) binder.point(&RecurrentCall::bias, binder.operand(2));
  binder.point(&RecurrentCall::h0, binder.operand(3));
  binder.point(&RecurrentCall::y, binder.result(0));
  binder.point(&RecurrentCall::hn, binder.result(1));
  if (lstm) {
    binder.require_dense(binder.operand(4), Dtype::f32, state);
    binder.require_dense(binder.result(2), Dtype::f32, state);
    binder.point(&RecurrentCall::c0, binder.operand(4));
    binder.point(&RecurrentCall::cn, binder.result(2));
  }
  const double products = static_cast<double>(call.steps * call.batch) * static_cast<double>(wide * call.size);
  binder.set_products(products);
  binder.set_work(2 * products, 0);
  binder.point_scratch(&RecurrentCall::scratch, call.batch * wide * 4);
}

}  // namespace

void bind_lstm(StepBinder& binder) { bind_recurrent(binder, "lstm", 4); }
void bind_gru(StepBinder& binder) { bind_recurrent(binder, "gru", 3); }

}  // namespace lissome
