// See insert_fake_quantization() in lissome/compress.h. Scales train as factors of what calibration gave, so that a
// learning rate means the same for each of them.
#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lissome/compress.h"
#include "lissome/compress/frozen_norm.h"
#include "lissome/compress/layer.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

constexpr int64_t kMostWeight = 127, kMostActivation = 255;
constexpr double kLeastFactor = 0.05;  // of a scale: training brings none to 0

// Training writes into weights, and the caller's stay as they are. Tied ones stay tied.
void own_weights(Program& program) {
  std::map<const void*, at::Tensor> owned;
  for (Weight& weight : program.weights) {
    const auto known = owned.find(weight.tensor.const_data_ptr());
    const bool tied = known != owned.end() && known->second.sizes() == weight.tensor.sizes();
    const at::Tensor own = tied ? known->second : weight.tensor.clone();
    owned.emplace(weight.tensor.const_data_ptr(), own);
    weight.tensor = own;
  }
}

Program prepare_layers(const Program& program) {
  Program prepared = program;
  own_weights(prepared);
  convert_to_inference(prepared);
  std::vector<Pass> passes;
  for (const char* name : {"remove_dead_nodes", "canonicalize", "remove_identities", "restore_matmul"})
    passes.push_back(*find_pass(name));
  run_passes(passes, prepared, {});
  return prepared;
}

struct TrainedLayer {
  Layer layer;
  std::optional<FrozenNorm> norm;
};

class FakeQuantizer {
 public:
  FakeQuantizer(const Program& source, const QuantizeOptions& options) : source_(source), result_(source) {
    const Uses uses = find_uses(source);
    for (Layer& layer : find_layers(source, options)) {
      if (layer.recurrent && layer.reason.empty()) layer.reason = "recurrent layers are not trained in int8";
      if (!layer.reason.empty()) {
        refused_.push_back(describe_refused(layer));
        continue;
      }
      std::optional<FrozenNorm> norm = find_frozen_norm(source, uses, layer);
      if (norm) norms_.insert(norm->position);
      layers_.emplace(layer.position, TrainedLayer{std::move(layer), std::move(norm)});
    }
    result_.nodes.clear();
  }

  bool empty() const { return layers_.empty(); }
  const std::vector<QuantizedLayer>& refused() const { return refused_; }

  void observe(const CalibrationBatches& batches, RangeMethod method, const WorkControl& control) {
    std::vector<ValueId> values;
    for (const auto& [position, trained] : layers_) {
      const ValueId input = trained.layer.input;
      if (std::find(values.begin(), values.end(), input) == values.end()) values.push_back(input);
    }
    const std::vector<ActivationRange> ranges = observe_ranges(source_, values, batches, method, control);
    for (size_t i = 0; i < values.size(); ++i) ranges_.emplace(values[i], ranges[i]);
  }

  Program run() {
    for (size_t position = 0; position < source_.nodes.size(); ++position) {
      if (norms_.contains(position)) continue;
      const Node& node = source_.nodes[position];
      const auto found = layers_.find(position);
      found == layers_.end() ? result_.nodes.push_back(node) : add_layer(node, found->second);
    }
    return std::move(result_);
  }

 private:
  QuantizedLayer describe_refused(const Layer& layer) const {
    const Node& node = source_.nodes[layer.position];
    return {layer.name, {}, node.origin, node.op.name(), 0, false, layer.reason, {}};
  }

  void add_layer(const Node& node, const TrainedLayer& trained) {
    const std::string name = name_parameters(node, trained.layer);
    at::Tensor weight = find_constant(source_, node.argument("weight"));
    ArgumentList arguments = node.arguments;
    if (trained.norm) {
      const ScaledWeights scaled = add_scaled_weights(result_, node, *trained.norm, name);
      arguments[1] = scaled.weight, arguments[2] = scaled.bias;
      weight = scale_weight(source_, weight, *trained.norm);
    }
    arguments[0] = round_input(node, trained.layer.input, name);
    arguments[1] = round_weight(node, arguments[1], weight, trained.layer.transposed ? 1 : 0, name);
    const Node& last = trained.norm ? source_.nodes[trained.norm->position] : node;
    Node& added = result_.add_node(node.op, std::move(arguments), {source_.value(last.result()).type}, node.origin);
    added.results = last.results;  // the readers of what is replaced need no change
  }

  // The module's name; that of the result where several layers have the module.
  std::string name_parameters(const Node& node, const Layer& layer) {
    const std::string module = node.origin == nullptr ? std::string() : node.origin->module;
    return !module.empty() && named_.insert(module).second ? module : layer.name;
  }

  // `initial` times a trained factor.
  ValueId add_scale(const Node& node, const std::string& name, const at::Tensor& initial) {
    const ValueType type = make_f32_type(initial);
    const ValueId base = result_.add_weight(name + "_start", initial, WeightRole::buffer),
                  factor = result_.add_weight(name, at::ones_like(initial), WeightRole::parameter);
    const ValueId kept =
        result_.add_node(Op::find("aten::clamp_min"), {factor, kLeastFactor}, {type}, node.origin).result();
    return result_.add_node(Op::find("aten::mul.Tensor"), {base, kept}, {type}, node.origin).result();
  }

  // Gradients of scales are as large against them as those of weights are against weights (Esser et al., section 2.2).
  static double find_gradient_factor(int64_t numbers, int64_t most) {
    return 1 / std::sqrt(static_cast<double>(std::max<int64_t>(numbers, 1) * most));
  }

  // The input of a layer in float where its range has no scale.
  Argument round_input(const Node& node, ValueId input, const std::string& name) {
    const auto known = rounded_.find(input);
    if (known != rounded_.end()) return known->second;
    const ActivationRange& range = ranges_.at(input);
    if (!range.has_scale()) return input;
    const ValueType type = source_.value(input).type;
    int64_t numbers = 1;
    for (size_t i = 1; i < type.sizes.size(); ++i) numbers *= type.sizes[i].constant().value_or(1);
    const ValueId scale = add_scale(node, name + ".input_scale", at::full({1}, range.scale(), at::kFloat)),
                  zero = result_.add_weight(name + ".input_zero",
                                            at::full({1}, static_cast<double>(range.zero_point()), at::kFloat),
                                            WeightRole::buffer);
    const ValueId rounded =
        result_
            .add_node(Op::find("aten::_fake_quantize_learnable_per_tensor_affine"),
                      {input, scale, zero, 0, kMostActivation, find_gradient_factor(numbers, kMostActivation)}, {type},
                      node.origin)
            .result();
    return rounded_.emplace(input, rounded).first->second;
  }

  ValueId round_weight(const Node& node, const Argument& value, const at::Tensor& weight, int64_t axis,
                       const std::string& name) {
    const at::Tensor rows = weight.transpose(0, axis).reshape({weight.size(axis), -1});
    const at::Tensor start = rows.abs().amax({1}).clamp_min(1e-30).div(kMostWeight).to(at::kFloat);
    const ValueId scale = add_scale(node, name + ".weight_scale", start),
                  zero = result_.add_weight(name + ".weight_zero", at::zeros_like(start), WeightRole::buffer);
    return result_
        .add_node(
            Op::find("aten::_fake_quantize_learnable_per_channel_affine"),
            {value, scale, zero, axis, -kMostWeight, kMostWeight, find_gradient_factor(rows.size(1), kMostWeight)},
            {make_f32_type(weight)}, node.origin)
        .result();
  }

  const Program& source_;
  Program result_;
  std::map<size_t, TrainedLayer> layers_;  // by position
  std::vector<QuantizedLayer> refused_;
  std::set<size_t> norms_;                     // positions of norms that their layers take in
  std::map<ValueId, ActivationRange> ranges_;  // of the inputs of layers
  std::map<ValueId, ValueId> rounded_;         // inputs of layers
  std::set<std::string> named_;                // modules whose names are taken
};

}  // namespace

Program insert_fake_quantization(const Program& program, const CalibrationBatches& batches,
                                 const QuantizeOptions& options, const WorkControl& control) {
  if (batches.empty())
    throw_error(ErrorKind::invalid_input, "int8 needs at least one batch of calibration data, none was given");
  const Program source = prepare_layers(program);
  check_patterns(source, options);
  FakeQuantizer quantizer(source, options);
  if (quantizer.empty())
    refuse_layers(quantizer.refused(), "layer of the model can be trained for int8", "linear or convolution");
  quantizer.observe(batches, options.range, control);
  return quantizer.run();
}

}  // namespace lissome
