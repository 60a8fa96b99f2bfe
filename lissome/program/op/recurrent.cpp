// One layer of LSTM or GRU in one or both directions, without what its inputs contribute: that is one linear for all
// steps, which stands in front and is compressed like any other. `gates` are its results, [steps, batch, directions *
// gates * size] or [batch, steps, ...]; formulas as in kernel/recurrent/recurrent.h.
//
//   weight [directions, gates * size, size]: f32 as it is; bf16 multiplies h rounded to bf16; s8 with weight_scales f32
//   [directions, gates * size] multiplies h as linear_dynamic_int8 does. Sums, gates and states are f32.
//   bias [directions * 3 * size] is that of the recurrent product, for GRU alone
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

#include <algorithm>

#include "lissome/base.h"
#include "lissome/program/op/check_arguments.h"
#include "lissome/program/op/quantized.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// h W^T of one direction.
at::Tensor multiply_state(const at::Tensor& h, const at::Tensor& weight, const OptionalTensor& scales,
                          int64_t direction) {
  const at::Tensor rows = weight.select(0, direction);
  if (weight.scalar_type() == at::kChar)
    return linear_dynamic_int8(h, rows, scales->select(0, direction), std::nullopt, "none", std::nullopt);
  if (weight.scalar_type() == at::kBFloat16)
    return at::matmul(h.to(at::kBFloat16).to(at::kFloat), rows.to(at::kFloat).t());
  return at::matmul(h, rows.t());
}

struct Layer {
  Layer(const at::Tensor& gates, const at::Tensor& weight, const OptionalTensor& scales, const at::Tensor& h0,
        int64_t gate_count, bool batch_first)
      : step_dim(batch_first ? 1 : 0),
        steps(gates.dim() == 3 ? gates.size(step_dim) : 0),
        directions(h0.size(0)),
        size(h0.size(-1)),
        wide(gate_count * size) {
    const std::vector<int64_t> sizes = {directions, wide, size};
    check_arguments(gates.dim() == 3 && h0.dim() == 3 && directions <= 2 && gates.size(2) == directions * wide &&
                        gates.size(1 - step_dim) == h0.size(1) && weight.sizes() == sizes,
                    "gates, weight and states of a recurrent layer do not belong together");
    const bool has_scales = scales && scales->defined();
    check_arguments((weight.scalar_type() == at::kChar) == has_scales, "weights of s8, and no others, have scales");
    check_arguments(!has_scales || scales->sizes() == at::IntArrayRef(sizes).slice(0, 2),
                    "there must be one weight scale an output");
  }

  // What the inputs contribute in this step and direction.
  at::Tensor input(const at::Tensor& gates, int64_t step, int64_t direction) const {
    return gates.select(step_dim, step).narrow(1, direction * wide, wide);
  }
  int64_t step(int64_t turn, int64_t direction) const { return direction == 0 ? turn : steps - 1 - turn; }
  // Outputs of all steps in their order, of both directions beside each other.
  at::Tensor join(std::vector<std::vector<at::Tensor>> outputs) const {
    if (directions == 2) std::reverse(outputs[1].begin(), outputs[1].end());
    std::vector<at::Tensor> all;
    for (const std::vector<at::Tensor>& one : outputs) all.push_back(at::stack(one, step_dim));
    return at::cat(all, 2);
  }

  int64_t step_dim, steps, directions, size, wide;
};

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_layer(const at::Tensor& gates, const at::Tensor& weight,
                                                          const OptionalTensor& weight_scales, const at::Tensor& h0,
                                                          const at::Tensor& c0, bool batch_first) {
  const Layer layer(gates, weight, weight_scales, h0, 4, batch_first);
  check_arguments(c0.sizes() == h0.sizes(), "both states of an LSTM have the same sizes");
  check_arguments(layer.steps > 0, "a recurrent layer needs a step");
  std::vector<std::vector<at::Tensor>> outputs(static_cast<size_t>(layer.directions));
  std::vector<at::Tensor> hn, cn;
  for (int64_t d = 0; d < layer.directions; ++d) {
    at::Tensor h = h0.select(0, d), c = c0.select(0, d);
    for (int64_t turn = 0; turn < layer.steps; ++turn) {
      const at::Tensor input = layer.input(gates, layer.step(turn, d), d);
      const std::vector<at::Tensor> z = multiply_state(h, weight, weight_scales, d).add(input).chunk(4, 1);
      c = z[1].sigmoid().mul(c).add(z[0].sigmoid().mul(z[2].tanh()));
      h = z[3].sigmoid().mul(c.tanh());
      outputs[static_cast<size_t>(d)].push_back(h);
    }
    hn.push_back(h), cn.push_back(c);
  }
  return {layer.join(std::move(outputs)), at::stack(hn), at::stack(cn)};
}

std::tuple<at::Tensor, at::Tensor> gru_layer(const at::Tensor& gates, const at::Tensor& weight,
                                             const OptionalTensor& weight_scales, const OptionalTensor& bias,
                                             const at::Tensor& h0, bool batch_first) {
  const Layer layer(gates, weight, weight_scales, h0, 3, batch_first);
  check_arguments(layer.steps > 0, "a recurrent layer needs a step");
  std::vector<std::vector<at::Tensor>> outputs(static_cast<size_t>(layer.directions));
  std::vector<at::Tensor> hn;
  for (int64_t d = 0; d < layer.directions; ++d) {
    at::Tensor h = h0.select(0, d);
    for (int64_t turn = 0; turn < layer.steps; ++turn) {
      at::Tensor product = multiply_state(h, weight, weight_scales, d);
      if (bias && bias->defined()) product = product.add(bias->narrow(0, d * layer.wide, layer.wide));
      const std::vector<at::Tensor> input = layer.input(gates, layer.step(turn, d), d).chunk(3, 1),
                                    own = product.chunk(3, 1);
      const at::Tensor reset = input[0].add(own[0]).sigmoid(), keep = input[1].add(own[1]).sigmoid();
      const at::Tensor candidate = input[2].add(reset.mul(own[2])).tanh();
      h = candidate.add(keep.mul(h.sub(candidate)));
      outputs[static_cast<size_t>(d)].push_back(h);
    }
    hn.push_back(h);
  }
  return {layer.join(std::move(outputs)), at::stack(hn)};
}

}  // namespace

std::vector<OpRow> list_recurrent_ops() {
  return {
      {"lstm_layer(Tensor gates, Tensor weight, Tensor? weight_scales, Tensor h0, Tensor c0, bool batch_first) -> "
       "(Tensor y, Tensor hn, Tensor cn)",
       wrap_kernel(lstm_layer)},
      {"gru_layer(Tensor gates, Tensor weight, Tensor? weight_scales, Tensor? bias, Tensor h0, bool batch_first) -> "
       "(Tensor y, Tensor hn)",
       wrap_kernel(gru_layer)},
  };
}

}  // namespace lissome
