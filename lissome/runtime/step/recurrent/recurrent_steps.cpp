#include "lissome/runtime/step/recurrent/recurrent_steps.h"

#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

// Sizes and strides, and that all but the weights fit them.
template <typename Step>
RecurrentSteps read_steps(const StepBinder& binder, const Step& step) {
  const PlacedValue& gates = binder.value(step.gates);
  RecurrentSteps call;
  call.size = step.form.size, call.directions = step.form.directions;
  const bool batch_first = step.form.batch_first;
  binder.require_product({call.directions * (Step::kGates * call.size + kLinearPanel), call.size + kLinearPanel, 4});
  binder.require(gates.sizes.size() == 3, "gates must have 3 dimensions");
  call.steps = gates.sizes[batch_first ? 1 : 0], call.batch = gates.sizes[batch_first ? 0 : 1];
  const int64_t wide = call.directions * Step::kGates * call.size, narrow = call.directions * call.size;
  const Sizes state = {call.directions, call.batch, call.size};
  binder.require_sizes(gates, {gates.sizes[0], gates.sizes[1], wide});
  if constexpr (requires { step.bias; }) {
    if (step.bias) binder.require_sizes(binder.value(step.bias), {wide});
  }
  binder.require_sizes(binder.value(step.h0), state);
  binder.require_sizes(binder.value(step.y), {gates.sizes[0], gates.sizes[1], narrow});
  binder.require_sizes(binder.value(step.hn), state);
  if constexpr (requires { step.c0; }) {
    binder.require_sizes(binder.value(step.c0), state);
    binder.require_sizes(binder.value(step.cn), state);
  }
  call.gates_step = batch_first ? wide : call.batch * wide, call.gates_row = batch_first ? call.steps * wide : wide;
  call.y_step = batch_first ? narrow : call.batch * narrow, call.y_row = batch_first ? call.steps * narrow : narrow;
  return call;
}

// `packed` elements of weights a direction.
template <typename Call, typename Step>
void bind_recurrent(StepBinder& binder, const Step& step, const RecurrentSteps& steps, Dtype multiplied,
                    int64_t packed) {
  Call call;
  static_cast<RecurrentSteps&>(call) = steps;
  binder.require_sizes(binder.value(step.weight), {call.directions * packed});
  binder.set_call(Step::kKernel, call);
  binder.point(&RecurrentSteps::gates, step.gates);
  binder.point(&Call::weight, step.weight);
  if constexpr (requires { step.bias; }) {
    if (step.bias) binder.point(&RecurrentSteps::bias, step.bias);
  }
  binder.point(&RecurrentSteps::h0, step.h0);
  binder.point(&RecurrentSteps::y, step.y);
  binder.point(&RecurrentSteps::hn, step.hn);
  if constexpr (requires { step.c0; }) {
    binder.point(&RecurrentSteps::c0, step.c0);
    binder.point(&RecurrentSteps::cn, step.cn);
  }
  const int64_t wide = call.directions * Step::kGates * call.size;
  const double products = static_cast<double>(call.steps * call.batch) * static_cast<double>(wide * call.size);
  binder.set_products(products, multiplied);
  binder.set_work(2 * products, 0);
  binder.point_scratch(&RecurrentSteps::scratch,
                       {call.directions, call.batch, recurrent_scratch(Step::kGates, call.size), 4});
}

template <typename Step>
void bind_f32(StepBinder& binder, const Step& step) {
  const RecurrentSteps call = read_steps(binder, step);
  bind_recurrent<RecurrentCall>(binder, step, call, Dtype::f32,
                                packed_linear_f32_size(Step::kGates * call.size, call.size));
}

template <typename Step>
void bind_bf16(StepBinder& binder, const Step& step) {
  const RecurrentSteps call = read_steps(binder, step);
  bind_recurrent<RecurrentBf16Call>(binder, step, call, Dtype::bf16,
                                    packed_linear_bf16_size(Step::kGates * call.size, call.size));
}

template <typename Step>
void bind_u8s8(StepBinder& binder, const Step& step) {
  const RecurrentSteps call = read_steps(binder, step);
  const int64_t outputs = Step::kGates * call.size;
  binder.require_sizes(binder.value(step.scales), {call.directions * outputs});
  binder.require_sizes(binder.value(step.weight_sums), {call.directions * outputs});
  bind_recurrent<RecurrentU8S8Call>(binder, step, call, Dtype::u8, packed_u8s8_size(outputs, call.size, {}));
  binder.point(&RecurrentU8S8Call::scales, step.scales);
  binder.point(&RecurrentU8S8Call::weight_sums, step.weight_sums);
}

}  // namespace

std::vector<StepRow> list_recurrent_steps() {
  return {declare_step<LstmStep, bind_f32<LstmStep>>(),          declare_step<LstmBf16Step, bind_bf16<LstmBf16Step>>(),
          declare_step<LstmU8S8Step, bind_u8s8<LstmU8S8Step>>(), declare_step<GruStep, bind_f32<GruStep>>(),
          declare_step<GruBf16Step, bind_bf16<GruBf16Step>>(),   declare_step<GruU8S8Step, bind_u8s8<GruU8S8Step>>()};
}

}  // namespace lissome
