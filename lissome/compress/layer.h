// One linear or convolution on its way to int8: found in the prepared program, quantized alone, measured, rewritten.
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
  bool dynamic = false;              // one scale a row, found while running
  bool recurrent = false;            // the product with the states; `input` is then what they become, see is_recurrent
  ActivationRange range;             // of the input, when not dynamic
  ValueId residual = ValueId::none;  // of a convolution, as large as its result
  ActivationRange residual_range;
  at::Tensor weight;           // s8, the float weight's sizes
  at::Tensor weight_scales;    // f32 [output channels]
  at::Tensor bias;             // f32 [output channels] or undefined; corrected after calibration
  double signal_to_noise = 0;  // dB
  std::string reason;          // why it stays in float; empty while it may be quantized
  Smoothing smoothing;
};

// The constant f32 tensor of a weight that nothing writes; undefined otherwise.
at::Tensor find_constant(const Program& program, const Argument& argument);

bool is_linear(const Node& node);

// Symmetric, a scale for each output channel (dimension 0, or 1 of a transposed one): w = s8 * scale.
void quantize_weight(const at::Tensor& given, Layer& layer);

// A layer of LSTM or GRU, of which the states are multiplied with a weight. What is measured of it is that product with
// all its outputs, which are all its states but the first.
bool is_recurrent(const Node& node);

// What a layer's weights are multiplied with.
ValueId find_input(const Node& node);

// Every linear, convolution and recurrent layer with constant f32 weights, with its weights quantized; the others come
// with a reason.
std::vector<Layer> find_layers(const Program& program, const QuantizeOptions& options);

// Calls `visit(layer, input tensor)` for the layers that read each value while one batch is interpreted in float.
void visit_layer_inputs(const Program& program, const std::map<ValueId, std::vector<Layer*>>& by_input,
                        const std::vector<c10::IValue>& batch,
                        const std::function<void(Layer&, const at::Tensor&)>& visit);

// The layer's output before activation and residual, in float and quantized. `input` may have other leading sizes than
// in the program.
at::Tensor run_float(const Program& program, const Layer& layer, const at::Tensor& input);
at::Tensor run_quantized(const Program& program, const Layer& layer, const at::Tensor& input);

}  // namespace lissome
