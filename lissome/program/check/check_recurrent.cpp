// See check_recurrent.h. Gates are stacked in the weights: [gates * hidden, inputs] and [gates * hidden, hidden].
#include "lissome/program/check/check_recurrent.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "lissome/base.h"

namespace lissome {
namespace {

void require_sizes(const char* what, const at::Tensor& tensor, std::vector<int64_t> wanted) {
  if (tensor.defined() && tensor.sizes() == wanted) return;
  const auto join = [](at::IntArrayRef sizes) {
    std::string text;
    for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return "[" + text + "]";
  };
  throw_error(ErrorKind::invalid_input, "the ", what, " must be ", join(wanted), ", not ",
              tensor.defined() ? join(tensor.sizes()) : "absent");
}

void require_rank(const char* what, const at::Tensor& tensor, int64_t rank) {
  if (tensor.defined() && tensor.dim() == rank) return;
  throw_error(ErrorKind::invalid_input, "the ", what, " must have ", rank, " dimensions");
}

struct CellSizes {
  int64_t gates, inputs, hidden, projected;  // projected = hidden where there is no projection
};

// `weights`: of one layer and direction, as nn.LSTM orders them: input, hidden, their biases, projection.
void check_cell(std::span<const at::Tensor> weights, const CellSizes& sizes, bool biases) {
  require_sizes("input weights", weights[0], {sizes.gates * sizes.hidden, sizes.inputs});
  require_sizes("hidden weights", weights[1], {sizes.gates * sizes.hidden, sizes.projected});
  for (size_t i = 2; i < (biases ? 4 : 2); ++i) {
    require_sizes("biases", weights[i], {sizes.gates * sizes.hidden});
    if (weights[i].scalar_type() != weights[0].scalar_type())
      throw_error(ErrorKind::invalid_input, "the biases must have the dtype of the weights");
  }
  if (sizes.projected != sizes.hidden) require_sizes("projection", weights.back(), {sizes.projected, sizes.hidden});
}

// `settings`: has_biases, num_layers, dropout, train, bidirectional; `sizes` of the first layer.
void check_layers(const std::vector<at::Tensor>& weights, std::span<const c10::IValue> settings, CellSizes sizes) {
  const bool biases = settings[0].toBool();
  const int64_t layers = settings[1].toInt(), directions = settings[4].toBool() ? 2 : 1;
  const size_t each = (biases ? 4 : 2) + (sizes.projected != sizes.hidden ? 1 : 0);
  if (layers < 1 || weights.size() % each != 0 ||
      weights.size() / each / static_cast<size_t>(directions) != static_cast<size_t>(layers) ||
      weights.size() / each % static_cast<size_t>(directions) != 0) {
    throw_error(ErrorKind::invalid_input, weights.size(), " weights do not make ", layers, " layers of ", directions,
                " directions with ", each, " weights each");
  }
  for (size_t cell = 0; cell < weights.size() / each; ++cell) {
    check_cell(std::span(weights).subspan(cell * each, each), sizes, biases);
    if ((cell + 1) % static_cast<size_t>(directions) == 0) sizes.inputs = directions * sizes.projected;
  }
}

// The states of an LSTM, or the one of another kind, [layers * directions, batch, width].
std::vector<at::Tensor> read_states(const c10::IValue& given) {
  std::vector<at::Tensor> states = given.isTensor() ? std::vector{given.toTensor()} : given.toTensorVector();
  if (given.isList() && states.size() != 2)
    throw_error(ErrorKind::invalid_input, "an LSTM has 2 states, not ", states.size());
  for (const at::Tensor& state : states) require_rank("states", state, 3);
  return states;
}

}  // namespace

// (input, states, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first)
void check_recurrent(std::span<const c10::IValue> arguments, int64_t gates) {
  const at::Tensor& input = arguments[0].toTensor();
  require_rank("input", input, 3);
  const std::vector<at::Tensor> states = read_states(arguments[1]);
  const int64_t batch = input.size(arguments[8].toBool() ? 0 : 1);
  const int64_t cells = arguments[4].toInt() * (arguments[7].toBool() ? 2 : 1);
  const CellSizes sizes = {gates, input.size(2), states.back().size(2), states[0].size(2)};
  require_sizes("hidden state", states[0], {cells, batch, sizes.projected});
  if (states.size() == 2) require_sizes("cell state", states[1], {cells, batch, sizes.hidden});
  check_layers(arguments[2].toTensorVector(), arguments.subspan(3), sizes);
}

// (data, batch_sizes, states, weights, has_biases, num_layers, dropout, train, bidirectional)
void check_packed_recurrent(std::span<const c10::IValue> arguments, int64_t gates) {
  const at::Tensor& data = arguments[0].toTensor();
  require_rank("data", data, 2);
  const std::vector<at::Tensor> states = read_states(arguments[2]);
  check_layers(arguments[3].toTensorVector(), arguments.subspan(4),
               {gates, data.size(1), states.back().size(2), states[0].size(2)});
}

// (input, states, input weights, hidden weights, input biases, hidden biases)
void check_recurrent_cell(std::span<const c10::IValue> arguments, int64_t gates) {
  const at::Tensor& input = arguments[0].toTensor();
  require_rank("input", input, 2);
  require_rank("hidden weights", arguments[3].toTensor(), 2);
  const int64_t hidden = arguments[3].toTensor().size(1);
  const std::vector<at::Tensor> cell = {arguments[2].toTensor(), arguments[3].toTensor()};
  check_cell(cell, {gates, input.size(1), hidden, hidden}, /*biases=*/false);
  for (size_t i = 4; i < 6; ++i) {
    const bool given = arguments[i].isTensor() && arguments[i].toTensor().defined();
    if (given) require_sizes("biases", arguments[i].toTensor(), {gates * hidden});
  }
}

}  // namespace lissome
