// One linear, convolution or recurrent layer that becomes int8: it is found in the prepared program, quantized alone,
// measured and rewritten.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lissome/compress.h"

namespace lissome {

struct Layer {
  size_t position = 0;  // in Program::nodes
  std::string name;     // of its result, as printed
  ValueId input = ValueId::none;
  bool is_conv = false;
  bool transposed = false;           // a convolution whose weight is [in, out, ...]
  bool dynamic = false;              // one scale for each row, computed while running
  bool recurrent = false;            // the product with the states; `input` is then the new states, see is_recurrent()
  ActivationRange range;             // of the input, if not dynamic
  ValueId residual = ValueId::none;  // of a convolution, of the size of its result
  ActivationRange residual_range;
  int group_bits = 0;  // of a weight in groups that the op unpacks, see group_rounding.h; 0: s8 with a scale an output
  at::Tensor importance;       // of a weight in groups: f32 [inputs], what an input's loss counts
  at::Tensor weight;           // s8, of the float weight's sizes, or in groups
  at::Tensor weight_scales;    // f32 [output channels], or bf16 [output channels, groups]
  at::Tensor bias;             // f32 [output channels] or undefined; corrected after calibration
  double signal_to_noise = 0;  // dB
  std::string reason;          // why the layer stays in float; empty if it may be quantized
  Smoothing smoothing;
};

// The constant f32 tensor of a weight that is never written; else undefined.
at::Tensor find_constant(const Program& program, const Argument& argument);

// f32 with the tensor's sizes.
ValueType make_f32_type(const at::Tensor& tensor);

bool is_linear(const Node& node);
bool is_convolution(const Node& node);

// Why a layer with this weight or bias, named `what` in the answer, stays in float; empty if all its numbers are
// finite.
std::string refuse_infinite(const at::Tensor& tensor, const char* what);

// In decibels; 200 where there is no noise at all. NaN where either is.
double find_signal_to_noise(double signal, double noise);

// Quantizes symmetrically with a scale for each output channel (dimension 0, or 1 if transposed): w = s8 * scale. A
// weight in groups is rounded to the nearest. `given` is f32, and multiplied by `factors` before: f64 of what it is
// multiplied by along its last dimension, or of sizes that expand to its own; not for transposed ones.
void quantize_weight(const at::Tensor& given, Layer& layer, const at::Tensor& factors = {});

// Whether the node is a layer of LSTM or GRU, whose states are multiplied by a weight. Measured is this product with
// all outputs of the layer, which are all its states except the first.
bool is_recurrent(const Node& node);

// The value that a layer's weights are multiplied by.
ValueId find_input(const Node& node);

// Whether the options leave the node's module in float.
bool is_kept(const Node& node, const QuantizeOptions& options);
bool is_layer(const Node& node);  // a linear, convolution or recurrent layer
// Throws usage for a pattern of the options that fits the module of no such node, which would silently do nothing.
void check_patterns(const Program& program, const QuantizeOptions& options, bool (*is_wanted)(const Node&) = is_layer);

// Lists all linears, convolutions and recurrent layers: with quantized weights if these are constant f32, else with a
// reason.
std::vector<Layer> find_layers(const Program& program, const QuantizeOptions& options);

// Calls `visit(layer, input tensor)` for the layers that read each value while one batch is interpreted in float.
void visit_layer_inputs(const Program& program, const std::map<ValueId, std::vector<Layer*>>& by_input,
                        const std::vector<c10::IValue>& batch,
                        const std::function<void(Layer&, const at::Tensor&)>& visit);

// The layer's output before activation and residual, in float and quantized. The leading sizes of `input` may differ
// from those in the program.
at::Tensor run_float(const Program& program, const Layer& layer, const at::Tensor& input);
at::Tensor run_quantized(const Program& program, const Layer& layer, const at::Tensor& input);

}  // namespace lissome
