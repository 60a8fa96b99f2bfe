// LSTM and GRU over whole sequences in f32: per layer one linear for what the inputs contribute to the gates, of all
// steps and both directions at once, then the recurrence on its own kernel.
#include "lissome/lower/candidate/recurrent/recurrent_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/lower/tensors.h"
#include "lissome/runtime/step/gemm/linear_steps.h"
#include "lissome/runtime/step/move/copy_steps.h"
#include "lissome/runtime/step/move/view_steps.h"
#include "lissome/runtime/step/recurrent/recurrent_steps.h"

namespace lissome {
namespace {

struct Layers {
  bool lstm, has_biases, batch_first;
  int64_t count, directions, gates, size;
};

// Position of a parameter of a layer and direction: weight_ih, weight_hh, bias_ih, bias_hh.
const Argument& parameter(const Node& node, const Layers& layers, int64_t layer, int64_t direction, int64_t which) {
  const int64_t each = layers.has_biases ? 4 : 2;
  return node.argument("params").list()[static_cast<size_t>((layer * layers.directions + direction) * each + which)];
}

// Of the weights, all of which are constant matrices and vectors; those of the first layer fit the input.
std::string refuse_sizes(const PlanBuilder& builder, const Node& node) {
  const ArgumentList& parameters = node.argument("params").list();
  const auto size = [&](size_t parameter, int64_t dim) {
    return builder.constant(parameters[parameter].value())->size(dim);
  };
  const size_t each = *node.argument("has_biases").get<bool>() ? 4 : 2;
  const size_t directions = *node.argument("bidirectional").get<bool>() ? 2 : 1;
  const int64_t states = size(1, 1), rows = (node.is("aten::lstm.input") ? 4 : 3) * states;
  const std::vector<Dimension>& input = builder.type(node.argument("input").value()).sizes;
  if (input.empty()) return "its input is a number";
  for (size_t i = 0; i < parameters.size(); ++i) {
    const size_t which = i % each;
    const bool first = i / each < directions;
    bool fits = size(i, 0) == rows && (which != 1 || size(i, 1) == states);
    if (which == 0 && first) fits = fits && input.back() == Dimension(size(i, 1));
    if (which == 0 && !first) fits = fits && size(i, 1) == states * static_cast<int64_t>(directions);
    if (!fits) return "the sizes of its weights do not fit each other";
  }
  return {};
}

std::string refuse_layers(const PlanBuilder& builder, const Node& node) {
  const Argument& parameters = node.argument("params");
  if (!parameters.is_list() || parameters.list().empty()) return "the list of weights is computed";
  for (const char* flag : {"has_biases", "bidirectional", "batch_first", "train"}) {
    if (!node.argument(flag).get<bool>()) return std::string(flag) + " is computed";
  }
  const auto* layers = node.argument("num_layers").get<int64_t>();
  if (!layers || *layers < 1) return "the number of layers is computed";
  if (*node.argument("train").get<bool>() && node.argument("dropout") != Argument(0.0)) return "it drops out";
  const int64_t each = *node.argument("has_biases").get<bool>() ? 4 : 2;
  const int64_t directions = *node.argument("bidirectional").get<bool>() ? 2 : 1;
  if (static_cast<int64_t>(parameters.list().size()) != *layers * directions * each) return "it projects its states";
  for (size_t i = 0; i < parameters.list().size(); ++i) {
    const int64_t which = static_cast<int64_t>(i) % each;
    const std::string refusal = refuse_weight(builder, parameters.list()[i], Dtype::f32, which < 2 ? 2 : 1);
    if (!refusal.empty()) return refusal;
  }
  return refuse_sizes(builder, node);
}

Layers read_layers(const PlanBuilder& builder, const Node& node) {
  Layers layers{node.is("aten::lstm.input"), *node.argument("has_biases").get<bool>(),
                *node.argument("batch_first").get<bool>(), *node.argument("num_layers").get<int64_t>(),
                *node.argument("bidirectional").get<bool>() ? 2 : 1};
  layers.gates = layers.lstm ? 4 : 3;
  layers.size = builder.constant(node.argument("params").list()[1].value())->size(1);
  return layers;
}

// Rows of all directions below each other.
std::vector<float> stack_rows(const PlanBuilder& builder, const Node& node, const Layers& layers, int64_t layer,
                              int64_t which) {
  std::vector<float> rows;
  for (int64_t d = 0; d < layers.directions; ++d) {
    const Array array = share_tensor(*builder.constant(parameter(node, layers, layer, d, which).value()));
    rows.insert(rows.end(), array.data<float>(), array.data<float>() + array.elements());
  }
  return rows;
}

PlanValueId keep_array(PlanBuilder& builder, const std::string& name, const std::vector<float>& values) {
  if (builder.has_packed(name)) return builder.find_packed(name);
  Array array = make_array(Dtype::f32, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.data<float>());
  return builder.add_packed(name, std::move(array));
}

class RecurrentEmitter {
 public:
  RecurrentEmitter(PlanBuilder& builder, const Node& node)
      : builder_(builder), node_(node), layers_(read_layers(builder, node)) {
    const Argument& states = node.argument("hx");
    if (layers_.lstm) {
      states_ = {states.list()[0].value(), states.list()[1].value()};
    } else {
      states_ = {states.value()};
    }
    for (const ValueId id : states_) state_sizes_ = builder.type(id).sizes;
  }

  void emit() {
    const Argument& input = node_.argument("input");
    PlanValueId x = builder_.use_dense(input, node_);
    std::vector<Dimension> sizes = builder_.type(input.value()).sizes;
    for (int64_t layer = 0; layer < layers_.count; ++layer) {
      x = layers_.lstm ? emit_layer<LstmStep>(layer, x, sizes) : emit_layer<GruStep>(layer, x, sizes);
    }
    for (size_t i = 0; i < last_.size(); ++i) join(i);
  }

 private:
  std::string name(int64_t layer, const char* what) const {
    return builder_.program().value(node_.results[0]).name + "." + std::to_string(layer) + what;
  }
  // Of all directions: what is packed together is named by all that it is made of.
  std::string weight_names(int64_t layer, int64_t which) const {
    std::string names;
    for (int64_t d = 0; d < layers_.directions; ++d) {
      if (d > 0) names += "+";
      names += builder_.program().find_weight(parameter(node_, layers_, layer, d, which).value())->name;
    }
    return names;
  }

  PlanValueId multiply_inputs(int64_t layer, PlanValueId x, std::vector<Dimension> sizes) {
    const int64_t outputs = layers_.directions * layers_.gates * layers_.size;
    const int64_t inputs = builder_.constant(parameter(node_, layers_, layer, 0, 0).value())->size(1);
    const std::string packed_name = weight_names(layer, 0) + ".recurrent_inputs";
    if (!builder_.has_packed(packed_name)) {
      Array packed = make_array(Dtype::f32, {packed_linear_f32_size(outputs, inputs)});
      pack_linear_f32(stack_rows(builder_, node_, layers_, layer, 0).data(), outputs, inputs, inputs, 1,
                      packed.data<float>());
      builder_.add_packed(packed_name, std::move(packed));
    }
    PlanValueId bias = PlanValueId::none;
    if (layers_.has_biases) {
      std::vector<float> sums = stack_rows(builder_, node_, layers_, layer, 2);
      const std::vector<float> more = stack_rows(builder_, node_, layers_, layer, 3);
      for (size_t i = 0; layers_.lstm && i < sums.size(); ++i) sums[i] += more[i];
      const std::string names = weight_names(layer, 2);
      bias = keep_array(builder_, layers_.lstm ? names + "+" + weight_names(layer, 3) + ".summed" : names + ".stacked",
                        sums);
    }
    sizes.back() = Dimension(outputs);
    LinearF32Step step;
    step.outputs = outputs;
    step.x = {x};
    step.weight = {builder_.find_packed(packed_name)};
    step.bias = {bias};
    step.y = {builder_.make(builder_.add_value(name(layer, ".gates"), Dtype::f32, std::move(sizes)))};
    builder_.add_step(step, node_);
    return step.y.value;
  }

  PlanValueId pack_recurrent(int64_t layer) {
    const std::string packed_name = weight_names(layer, 1) + ".recurrent";
    if (builder_.has_packed(packed_name)) return builder_.find_packed(packed_name);
    const int64_t outputs = layers_.gates * layers_.size, each = packed_linear_f32_size(outputs, layers_.size);
    const std::vector<float> rows = stack_rows(builder_, node_, layers_, layer, 1);
    Array packed = make_array(Dtype::f32, {layers_.directions * each});
    for (int64_t d = 0; d < layers_.directions; ++d) {
      pack_linear_f32(rows.data() + d * outputs * layers_.size, outputs, layers_.size, layers_.size, 1,
                      packed.data<float>() + d * each);
    }
    return builder_.add_packed(packed_name, std::move(packed));
  }

  // h0 or c0 of one layer: a view of its directions.
  PlanValueId view_state(int64_t layer, size_t which) {
    const PlanValueId all = builder_.use_dense(states_[which], node_);
    if (layers_.count == 1) return all;
    const ValueId part = builder_.add_value(name(layer, which == 0 ? ".h0" : ".c0"), Dtype::f32, layer_state());
    return builder_.add_view({.x = {all}, .form = "slice", .dim = 0, .start = layer * layers_.directions}, node_, part);
  }
  std::vector<Dimension> layer_state() const {
    return {Dimension(layers_.directions), state_sizes_[1], state_sizes_[2]};
  }

  // A result of the node where this layer makes it whole, else a value of its own.
  PlanValueId make_result(int64_t layer, size_t which, const std::vector<Dimension>& sizes) {
    static constexpr const char* kNames[] = {".y", ".hn", ".cn"};
    const bool whole = which == 0 ? layer + 1 == layers_.count : layers_.count == 1;
    const ValueId id = node_.results[which];
    return builder_.make(
        whole && id != ValueId::none ? id : builder_.add_value(name(layer, kNames[which]), Dtype::f32, sizes));
  }

  // The result of a layer after all its steps: hn or cn.
  Result make_last(int64_t layer, size_t which) {
    last_[which].push_back(make_result(layer, which + 1, layer_state()));
    return {last_[which].back()};
  }

  template <typename Step>
  PlanValueId emit_layer(int64_t layer, PlanValueId x, std::vector<Dimension>& sizes) {
    Step step;
    step.form = {layers_.size, layers_.directions, layers_.batch_first};
    step.gates = {multiply_inputs(layer, x, sizes)};
    step.weight = {pack_recurrent(layer)};
    if constexpr (requires { step.bias; }) {
      if (layers_.has_biases) {
        const std::vector<float> bias = stack_rows(builder_, node_, layers_, layer, 3);
        step.bias = {keep_array(builder_, weight_names(layer, 3) + ".stacked", bias)};
      }
    }
    step.h0 = {view_state(layer, 0)};
    if constexpr (requires { step.c0; }) step.c0 = {view_state(layer, 1)};
    sizes.back() = Dimension(layers_.directions * layers_.size);
    step.y = {make_result(layer, 0, sizes)};
    last_.resize(states_.size());
    step.hn = make_last(layer, 0);
    if constexpr (requires { step.cn; }) step.cn = make_last(layer, 1);
    builder_.add_step(step, node_);
    return step.y.value;
  }

  // The last states of several layers become one value.
  void join(size_t which) {
    const ValueId id = node_.results[which + 1];
    if (layers_.count == 1 || id == ValueId::none) return;
    ConcatStep step;
    for (const PlanValueId state : last_[which]) step.add_piece(state);
    step.y = {builder_.make(id)};
    builder_.add_step(step, node_);
  }

  PlanBuilder& builder_;
  const Node& node_;
  Layers layers_;
  std::vector<ValueId> states_;
  std::vector<Dimension> state_sizes_;
  std::vector<std::vector<PlanValueId>> last_;  // of each layer, by kind of state
};

}  // namespace

std::string refuse_recurrent(const PlanBuilder& builder, const Node& node) {
  const Argument& x = node.argument("input");
  const std::string refusal = first_refusal({refuse_tensor(builder, x, Dtype::f32), refuse_layers(builder, node)});
  if (!refusal.empty()) return refusal;
  if (builder.type(x.value()).sizes.size() != 3) return "x has no batch";
  for (const ValueId id : node.results) {
    if (id == ValueId::none) continue;
    const std::string refused = refuse_tensor(builder, Argument(id), Dtype::f32);
    if (!refused.empty()) return refused;
  }
  const Layers layers = read_layers(builder, node);
  if (layers.count > kConcatPieces || layers.size == 0) return "it has too many layers, or empty ones";
  const Argument& states = node.argument("hx");
  if (layers.lstm && (!states.is_list() || states.list().size() != 2)) return "the states are computed";
  const std::vector<Argument> given = layers.lstm ? states.list() : std::vector<Argument>{states};
  for (const Argument& state : given) {
    const std::string refused = refuse_tensor(builder, state, Dtype::f32);
    if (!refused.empty()) return refused;
    const std::vector<Dimension>& sizes = builder.type(state.value()).sizes;
    if (sizes.size() != 3 || !(sizes[0] == Dimension(layers.count * layers.directions)) ||
        !(sizes[1] == builder.type(x.value()).sizes[layers.batch_first ? 0 : 1]) ||
        !(sizes[2] == Dimension(layers.size))) {
      return "the states have other sizes than the layers";
    }
  }
  for (int64_t i = 0; i < layers.count * layers.directions; ++i) {
    const at::Tensor& inputs =
        *builder.constant(parameter(node, layers, i / layers.directions, i % layers.directions, 0).value());
    const at::Tensor& own =
        *builder.constant(parameter(node, layers, i / layers.directions, i % layers.directions, 1).value());
    if (inputs.size(0) != layers.gates * layers.size || own.size(0) != inputs.size(0) || own.size(1) != layers.size) {
      return "the weights have other sizes than the layers";
    }
  }
  return {};
}

void emit_recurrent(PlanBuilder& builder, const Node& node) { RecurrentEmitter(builder, node).emit(); }

}  // namespace lissome
