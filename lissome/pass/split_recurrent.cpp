// LSTM and GRU into layers of which the products can be made smaller one by one.
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>

#include "lissome/pass.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// Constant weights of all layers and directions, f32, in the order of the op.
struct Recurrent {
  bool lstm = false, has_biases = false, batch_first = false;
  int64_t layers = 0, directions = 1, gates = 0, size = 0;
  std::vector<at::Tensor> weights;

  // weight_ih, weight_hh, bias_ih or bias_hh of all directions of a layer, one below the other.
  at::Tensor stack(int64_t layer, int64_t which) const {
    const int64_t each = has_biases ? 4 : 2;
    std::vector<at::Tensor> rows;
    for (int64_t d = 0; d < directions; ++d)
      rows.push_back(weights[static_cast<size_t>((layer * directions + d) * each + which)]);
    return at::cat(rows);
  }
};

bool read_weights(const Rewriter& rewriter, const Argument& parameters, Recurrent& recurrent) {
  if (!parameters.is_list() || parameters.list().empty()) return false;
  for (const Argument& parameter : parameters.list()) {
    const at::Tensor tensor = constant_tensor(rewriter, parameter);
    if (!tensor.defined() || tensor.scalar_type() != at::kFloat) return false;
    recurrent.weights.push_back(tensor);
  }
  const size_t each = recurrent.has_biases ? 4 : 2;
  return recurrent.weights.size() == each * static_cast<size_t>(recurrent.layers * recurrent.directions);
}

// Nothing where something is computed, drops out, projects its states or has no batch.
std::optional<Recurrent> read_recurrent(const Rewriter& rewriter, const Node& node) {
  if (!node.is("aten::lstm.input") && !node.is("aten::gru.input")) return std::nullopt;
  for (const char* flag : {"has_biases", "bidirectional", "batch_first", "train"}) {
    if (!node.argument(flag).get<bool>()) return std::nullopt;
  }
  const auto* layers = node.argument("num_layers").get<int64_t>();
  if (!layers || *layers < 1 || *node.argument("train").get<bool>()) return std::nullopt;
  Recurrent recurrent;
  recurrent.lstm = node.is("aten::lstm.input");
  recurrent.gates = recurrent.lstm ? 4 : 3;
  recurrent.has_biases = *node.argument("has_biases").get<bool>();
  recurrent.batch_first = *node.argument("batch_first").get<bool>();
  recurrent.layers = *layers;
  recurrent.directions = *node.argument("bidirectional").get<bool>() ? 2 : 1;
  if (!read_weights(rewriter, node.argument("params"), recurrent)) return std::nullopt;
  recurrent.size = recurrent.weights[1].size(1);
  const ValueType& x = rewriter.type_of(node.argument("input"));
  const Argument& states = node.argument("hx");
  if (recurrent.lstm && (!states.is_list() || states.list().size() != 2)) return std::nullopt;
  const Argument& first = recurrent.lstm ? states.list().front() : states;
  const ValueType& state = rewriter.type_of(first);
  const bool sized = is_sized_float(x) && x.dtype == Dtype::f32 && x.sizes.size() == 3 && is_sized_float(state) &&
                     state.dtype == Dtype::f32 && state.sizes.size() == 3;
  return sized ? std::optional(std::move(recurrent)) : std::nullopt;
}

class RecurrentSplitter {
 public:
  RecurrentSplitter(Rewriter& rewriter, int position, Recurrent recurrent)
      : rewriter_(rewriter),
        position_(position),
        recurrent_(std::move(recurrent)),
        node_(rewriter.node(position)),
        name_(rewriter.program().find_weight(node_.argument("params").list()[0].value())->name) {
    const Argument& states = node_.argument("hx");
    states_ = recurrent_.lstm ? states.list() : std::vector<Argument>{states};
    state_sizes_ = rewriter.type_of(states_[0]).sizes;
    state_sizes_[0] = Dimension(recurrent_.directions);
  }

  void run() {
    Argument x = node_.argument("input");
    std::vector<std::vector<Argument>> last(states_.size());
    for (int64_t layer = 0; layer < recurrent_.layers; ++layer) {
      const std::vector<ValueId> results = add_layer(x, layer);
      x = results[0];
      for (size_t i = 0; i < last.size(); ++i) last[i].emplace_back(results[i + 1]);
    }
    replace(0, x);
    for (size_t i = 0; i < last.size(); ++i) replace(i + 1, join(last[i]));
  }

 private:
  void replace(size_t result, const Argument& value) {
    if (node_.results[result] != ValueId::none) rewriter_.replace_value(node_.results[result], value);
  }
  ValueId insert(const char* op, ArgumentList arguments, std::vector<ValueType> types) {
    return rewriter_.insert_before(position_, Op::find(op), std::move(arguments), std::move(types), node_.origin);
  }
  ValueId add(int64_t layer, const char* what, const at::Tensor& tensor) {
    return add_constant(rewriter_.program(), name_ + "." + std::to_string(layer) + what, tensor);
  }

  // What the inputs contribute to the gates, in all steps and directions.
  ValueId multiply_inputs(const Argument& x, int64_t layer) {
    Argument bias;
    if (recurrent_.has_biases) {
      const at::Tensor inputs = recurrent_.stack(layer, 2);
      bias = add(layer, ".inputs_bias", recurrent_.lstm ? inputs.add(recurrent_.stack(layer, 3)) : inputs);
    }
    std::vector<Dimension> sizes = rewriter_.type_of(x).sizes;
    sizes.back() = Dimension(recurrent_.directions * recurrent_.gates * recurrent_.size);
    return insert("aten::linear", {x, add(layer, ".inputs", recurrent_.stack(layer, 0)), bias},
                  {tensor_type(Dtype::f32, std::move(sizes))});
  }

  Argument take_state(size_t which, int64_t layer) {
    if (recurrent_.layers == 1) return states_[which];
    const int64_t first = layer * recurrent_.directions;
    return insert("aten::slice.Tensor", {states_[which], int64_t{0}, first, first + recurrent_.directions, int64_t{1}},
                  {tensor_type(Dtype::f32, state_sizes_)});
  }

  std::vector<ValueId> add_layer(const Argument& x, int64_t layer) {
    const ValueId gates = multiply_inputs(x, layer);
    const std::vector<int64_t> blocks = {recurrent_.directions, recurrent_.gates * recurrent_.size, recurrent_.size};
    ArgumentList arguments = {gates, add(layer, ".states", recurrent_.stack(layer, 1).reshape(blocks)), Argument()};
    if (!recurrent_.lstm) {
      arguments.push_back(recurrent_.has_biases ? Argument(add(layer, ".states_bias", recurrent_.stack(layer, 3)))
                                                : Argument());
    }
    std::vector<Dimension> sizes = rewriter_.type_of(x).sizes;
    sizes.back() = Dimension(recurrent_.directions * recurrent_.size);
    std::vector<ValueType> types = {tensor_type(Dtype::f32, std::move(sizes))};
    for (size_t i = 0; i < states_.size(); ++i) {
      arguments.push_back(take_state(i, layer));
      types.push_back(tensor_type(Dtype::f32, state_sizes_));
    }
    arguments.emplace_back(recurrent_.batch_first);
    const ValueId y =
        insert(recurrent_.lstm ? "lissome::lstm_layer" : "lissome::gru_layer", std::move(arguments), std::move(types));
    return rewriter_.inserted(y).results;
  }

  Argument join(const std::vector<Argument>& states) {
    if (states.size() == 1) return states[0];
    std::vector<Dimension> sizes = state_sizes_;
    sizes[0] = Dimension(recurrent_.layers * recurrent_.directions);
    return insert("aten::cat", {Argument(states), int64_t{0}}, {tensor_type(Dtype::f32, std::move(sizes))});
  }

  Rewriter& rewriter_;
  const int position_;
  const Recurrent recurrent_;
  const Node node_;
  const std::string name_;
  std::vector<Argument> states_;
  std::vector<Dimension> state_sizes_;  // of one layer
};

}  // namespace

int split_recurrent(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    if (std::optional<Recurrent> recurrent = read_recurrent(rewriter, rewriter.node(position)))
      RecurrentSplitter(rewriter, position, std::move(*recurrent)).run();
  }
  const int rewrites = rewriter.finish();
  remove_unread_weights(program);
  return rewrites;
}

}  // namespace lissome
