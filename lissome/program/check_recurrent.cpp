// See check_recurrent.h. Gates are stacked four high in the weights: [4 * hidden, inputs] and [4 * hidden, hidden].
#include "lissome/program/check_recurrent.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr int64_t kGates = 4;

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
  int64_t inputs, hidden, projected;  // projected = hidden where there is no projection
};

// `weights`: of one layer and direction, as nn.LSTM orders them: input, hidden, their biases, projection.
void check_cell(std::span<const at::Tensor> weights, const CellSizes& sizes, bool biases) {
  require_sizes("input weights", weights[0], {kGates * sizes.hidden, sizes.inputs});
  require_sizes("hidden weights", weights[1], {kGates * sizes.hidden, sizes.projected});
  for (size_t i = 2; i < (biases ? 4 : 2); ++i) {
    require_sizes("biases", weights[i], {kGates * sizes.hidden});
    if (weights[i].scalar_type() != weights[0].scalar_type())
      throw_error(ErrorKind::invalid_input, "the biases must have the dtype of the weights");
  }
  if (sizes.projected != sizes.hidden) require_sizes("projection", weights.back(), {sizes.projected, sizes.hidden});
}

}  // namespace

// (input, states, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first)
void check_lstm(std::span<const c10::IValue> arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  const std::vector<at::Tensor> states = arguments[1].toTensorVector(), weights = arguments[2].toTensorVector();
  const bool biases = arguments[3].toBool(), batch_first = arguments[8].toBool();
  const int64_t layers = arguments[4].toInt(), directions = arguments[7].toBool() ? 2 : 1;
  require_rank("input", input, 3);
  if (states.size() != 2) throw_error(ErrorKind::invalid_input, "an LSTM has 2 states, not ", states.size());
  for (const at::Tensor& state : states) require_rank("states", state, 3);
  CellSizes sizes = {input.size(2), states[1].size(2), states[0].size(2)};
  const size_t each = (biases ? 4 : 2) + (sizes.projected != sizes.hidden ? 1 : 0);
  if (layers < 1 || weights.size() % each != 0 ||
      weights.size() / each / static_cast<size_t>(directions) != static_cast<size_t>(layers) ||
      weights.size() / each % static_cast<size_t>(directions) != 0) {
    throw_error(ErrorKind::invalid_input, weights.size(), " weights do not make ", layers, " layers of ", directions,
                " directions with ", each, " weights each");
  }
  const int64_t batch = input.size(batch_first ? 0 : 1);
  require_sizes("hidden state", states[0], {layers * directions, batch, sizes.projected});
  require_sizes("cell state", states[1], {layers * directions, batch, sizes.hidden});
  for (size_t cell = 0; cell < weights.size() / each; ++cell) {
    check_cell(std::span(weights).subspan(cell * each, each), sizes, biases);
    if ((cell + 1) % static_cast<size_t>(directions) == 0) sizes.inputs = directions * sizes.projected;
  }
}

}  // namespace lissome
