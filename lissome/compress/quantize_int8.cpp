// Post-training int8. Flow: smooth what linears read; find the linears, convolutions and recurrent layers of the
// prepared program; observe the ranges of their inputs; quantize each alone, correct its bias, measure its signal to
// noise; rewrite those that keep enough; let neighbours hand over u8.
#include <ATen/core/ivalue.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "lissome/compress.h"
#include "lissome/compress/int8_nodes.h"
#include "lissome/compress/int8_ops.h"
#include "lissome/compress/layer.h"
#include "lissome/compress/rewrite_int8.h"
#include "lissome/compress/smooth_channels.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

// Enough to rank layers and to correct biases; the ranges come from all batches.
constexpr size_t kMeasuredBatches = 4;
constexpr int64_t kMeasuredRows = 512;  // of a batch, where a linear reads more

// What a layer's quantized form gives less, or more, than its float form, over all batches.
struct Errors {
  std::vector<at::Tensor> block_means;  // each f64 [channels]
  at::Tensor sums;                      // f64 [channels]
  double squares = 0;
  int64_t positions = 0;
  double signal = 0;  // squares of what the float form gives

  void add(const Layer& layer, const at::Tensor& wanted, const at::Tensor& got);
  at::Tensor find_bias() const;
  double find_noise(const at::Tensor& correction) const;
};

// Rows of a linear, evenly spread.
at::Tensor take_measured(const Layer& layer, const at::Tensor& input) {
  if (layer.is_conv || layer.recurrent || input.dim() == 0) return input;
  const at::Tensor rows = input.reshape({-1, input.size(-1)});
  return rows.slice(0, 0, rows.size(0), (rows.size(0) + kMeasuredRows - 1) / kMeasuredRows);
}

void Errors::add(const Layer& layer, const at::Tensor& wanted, const at::Tensor& got) {
  constexpr int64_t kBlocks = 16;
  const int64_t channel_dim = layer.is_conv ? 1 : -1;
  const at::Tensor error = wanted.to(at::kDouble).sub(got.to(at::kDouble));
  const at::Tensor rows = error.movedim(channel_dim, -1).reshape({-1, error.size(channel_dim)});
  for (const at::Tensor& block : rows.chunk(kBlocks)) block_means.push_back(block.mean(0));
  const at::Tensor sum = rows.sum(0);
  sums = sums.defined() ? sums.add(sum) : sum;
  squares += rows.pow(2).sum().item().toDouble();
  positions += rows.size(0);
  signal += wanted.to(at::kDouble).pow(2).sum().item().toDouble();
}

// By the median of means (Nemirovsky and Yudin 1983): what a few large errors leave in a mean would be added to every
// answer.
at::Tensor Errors::find_bias() const { return std::get<0>(at::stack(block_means).median(0)); }

// The squares of what is left once `correction`, f64 [channels], is added to every position.
double Errors::find_noise(const at::Tensor& correction) const {
  const double together = correction.mul(sums).sum().item().toDouble();
  const double added = static_cast<double>(positions) * correction.pow(2).sum().item().toDouble();
  const double left = squares - 2 * together + added;
  return left < 0 ? 0 : left;  // NaN stays
}

void correct_bias(Layer& layer, const Errors& errors) {
  layer.signal_to_noise = find_signal_to_noise(errors.signal, errors.squares);
  if (layer.recurrent) return;  // gates add what the inputs contribute: no bias of its own
  const at::Tensor correction = errors.find_bias();
  const at::Tensor base = layer.bias.defined() ? layer.bias.to(at::kDouble) : at::zeros_like(correction);
  layer.bias = base.add(correction).to(at::kFloat);
  layer.signal_to_noise = find_signal_to_noise(errors.signal, errors.find_noise(layer.bias.to(at::kDouble).sub(base)));
}

// What each layer's float and quantized forms give on the same float inputs, before activation and residual: sets
// biases and signal_to_noise.
void measure_layers(const Program& program, std::vector<Layer>& layers, const CalibrationBatches& batches,
                    const WorkControl& control) {
  std::map<ValueId, std::vector<Layer*>> by_input;
  for (Layer& layer : layers) {
    if (layer.reason.empty()) by_input[layer.input].push_back(&layer);
  }
  std::map<Layer*, Errors> errors;
  const size_t count = std::min(kMeasuredBatches, batches.size());
  for (size_t i = 0; i < count && !control.stopped(); ++i) {
    control.report({"computation", "int8: measuring layers", static_cast<double>(i) / static_cast<double>(count), -1});
    visit_layer_inputs(program, by_input, batches[i], [&](Layer& layer, const at::Tensor& input) {
      if (input.numel() == 0) return;
      const at::Tensor some = take_measured(layer, input);
      errors[&layer].add(layer, run_float(program, layer, some), run_quantized(program, layer, some));
    });
  }
  for (auto& [layer, of_layer] : errors) correct_bias(*layer, of_layer);
}

// Why a layer whose input has this range stays in float; empty if it need not.
std::string refuse_range(const ActivationRange& range) {
  if (range.has_scale()) return {};
  if (range.high > range.low || std::isnan(range.high - range.low)) {
    return "its input was infinite, NaN or too small for a scale in f32 during calibration";
  }
  return "its input never varied during calibration";
}

// The ranges of values that the model itself rounds to 256 numbers.
std::map<ValueId, ActivationRange> find_known_ranges(const Program& program) {
  std::map<ValueId, ActivationRange> ranges;
  for (const Node& node : program.nodes) {
    if (!node.is("lissome::dequantize")) continue;
    if (const auto range = read_range(node)) ranges.emplace(node.result(), *range);
  }
  return ranges;
}

// Layers whose inputs have no range yet. The others were trained for theirs.
std::vector<Layer> find_smoothable(const Program& program, const QuantizeOptions& options,
                                   const std::map<ValueId, ActivationRange>& known) {
  std::vector<Layer> layers = find_layers(program, options);
  std::erase_if(layers, [&](const Layer& layer) { return known.contains(layer.input); });
  return layers;
}

// Sets the ranges of layers, and returns the ranges of the values that int8 nodes read. `known` ranges need no batch.
Int8Ranges choose_ranges(const Program& program, std::vector<Layer>& layers,
                         const std::map<ValueId, ActivationRange>& known, const CalibrationBatches& batches,
                         const QuantizeOptions& options, const WorkControl& control) {
  std::vector<ValueId> values, int8_values;
  const auto list = [&](ValueId value) {
    if (value != ValueId::none && !known.contains(value) &&
        std::find(values.begin(), values.end(), value) == values.end()) {
      values.push_back(value);
    }
  };
  for (const Node& node : program.nodes) {
    if (!is_int8_node(program, node)) continue;
    int8_values.push_back(node.arguments.front().value());
    list(int8_values.back());
  }
  for (const Layer& layer : layers) {
    if (layer.reason.empty() && !layer.dynamic) list(layer.input), list(layer.residual);
  }
  const std::vector<ActivationRange> ranges = observe_ranges(program, values, batches, options.range, control);
  const auto find = [&](ValueId value) {
    if (const auto entry = known.find(value); entry != known.end()) return entry->second;
    const auto found = std::find(values.begin(), values.end(), value);
    return found == values.end() ? ActivationRange() : ranges[static_cast<size_t>(found - values.begin())];
  };
  for (Layer& layer : layers) {
    if (!layer.reason.empty() || layer.dynamic) continue;
    layer.range = find(layer.input);
    layer.residual_range = find(layer.residual);
    layer.reason = refuse_range(layer.range);
  }
  Int8Ranges int8_ranges;
  for (const ValueId value : int8_values) {
    const ActivationRange range = find(value);
    if (range.has_scale()) int8_ranges.emplace(program.value(value).name, range);
  }
  return int8_ranges;
}

// Those of values that a layer still reads in int8: what stays in float stays as it is.
std::vector<ChannelDivision> keep_divisions(const Program& program, const std::vector<ChannelDivision>& divisions,
                                            const std::vector<Layer>& layers) {
  std::set<std::string> quantized;
  for (const Layer& layer : layers) {
    if (layer.reason.empty()) quantized.insert(layer.name);
  }
  std::vector<ChannelDivision> kept;
  for (const ChannelDivision& division : divisions) {
    const bool any = std::any_of(division.readers.begin(), division.readers.end(), [&](size_t position) {
      return quantized.contains(program.value(program.nodes[position].result()).name);
    });
    if (any) kept.push_back(division);
  }
  return kept;
}

// The same layers in a program that was divided at other values.
void locate_layers(const Program& program, std::vector<Layer>& layers) {
  std::map<std::string, size_t> positions;
  for (size_t position = 0; position < program.nodes.size(); ++position) {
    for (const ValueId result : program.nodes[position].results) positions[program.value(result).name] = position;
  }
  for (Layer& layer : layers) {
    layer.position = positions.at(layer.name);
    layer.input = find_input(program.nodes[layer.position]);
  }
}

// Of LSTM and GRU each layer has products of its own.
Program split_layers(const Program& program) {
  Program split = program;
  split_recurrent(split);
  return split;
}

}  // namespace

Int8Calibration::Int8Calibration(const std::shared_ptr<const Program>& program, const CalibrationBatches& batches,
                                 const QuantizeOptions& options, const WorkControl& control) {
  Program split = split_layers(*program);
  const std::map<ValueId, ActivationRange> known = find_known_ranges(split);
  if (batches.empty() && known.empty())
    throw_error(ErrorKind::invalid_input, "int8 needs at least one batch of calibration data, none was given");
  check_patterns(split, options);
  program_ = std::make_shared<const Program>(std::move(split));
  SmoothedChannels smoothed =
      smooth_channels(*program_, find_smoothable(*program_, options, known), batches, options, control);
  const Program divided = divide_channels(*program_, smoothed.divisions);
  auto layers = std::make_shared<std::vector<Layer>>(find_layers(divided, options));
  for (Layer& layer : *layers) layer.smoothing = smoothed.layers[layer.name];
  int8_ranges_ = std::make_shared<const Int8Ranges>(choose_ranges(divided, *layers, known, batches, options, control));
  measure_layers(divided, *layers, batches, control);
  divisions_ = std::make_shared<const std::vector<ChannelDivision>>(std::move(smoothed.divisions));
  layers_ = std::move(layers);
}

Quantized Int8Calibration::quantize(double least_signal_to_noise) const {
  std::vector<Layer> layers = *layers_;
  Quantized result;
  for (Layer& layer : layers) {
    if (layer.reason.empty() && std::isnan(layer.signal_to_noise))
      layer.reason = "its result was infinite or NaN during calibration";
    if (layer.reason.empty() && layer.signal_to_noise < least_signal_to_noise) {
      layer.reason = "keeps only " + format_decibels(layer.signal_to_noise) + " of signal over quantization noise, " +
                     format_decibels(least_signal_to_noise) + " are asked";
    }
  }
  const Program divided = divide_channels(*program_, keep_divisions(*program_, *divisions_, layers));
  locate_layers(divided, layers);
  for (const Layer& layer : layers) {
    const Node& node = divided.nodes[layer.position];
    result.layers.push_back({layer.name, layer.range, node.origin, node.op.name(), layer.signal_to_noise,
                             layer.reason.empty(), layer.reason, layer.reason.empty() ? layer.smoothing : Smoothing()});
  }
  result.program = rewrite_int8(divided, layers, *int8_ranges_);
  return result;
}

Quantized quantize_int8(const Program& program, const CalibrationBatches& batches, const QuantizeOptions& options,
                        double least_signal_to_noise) {
  return Int8Calibration(std::make_shared<const Program>(program), batches, options).quantize(least_signal_to_noise);
}

QuantizeKind parse_quantize_kind(const std::string& word) {
  if (word == "static") return QuantizeKind::fixed;
  if (word == "qat") return QuantizeKind::trained;
  if (word == "dynamic") return QuantizeKind::dynamic;
  if (word == "weight") return QuantizeKind::weight;
  throw_error(ErrorKind::usage, "the kind must be static, dynamic, weight or qat, not ", quote(word));
}

Rounding parse_rounding(const std::string& word) {
  if (word == "nearest") return Rounding::nearest;
  if (word == "gptq") return Rounding::gptq;
  throw_error(ErrorKind::usage, "the rounding must be nearest or gptq, not ", quote(word));
}

std::string format_decibels(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f dB", value);
  return text;
}

std::string count_layers(const std::vector<QuantizedLayer>& layers) {
  const auto done = std::ranges::count_if(layers, &QuantizedLayer::quantized);
  return std::to_string(done) + " of " + std::to_string(layers.size()) + " layers";
}

std::vector<std::string> list_refusals(const std::vector<QuantizedLayer>& layers) {
  std::vector<std::string> refusals;
  for (const QuantizedLayer& layer : layers) {
    if (layer.quantized) continue;
    std::string refusal = name_layer(layer) + " stays in float: " + layer.reason;
    if (std::ranges::find(refusals, refusal) == refusals.end()) refusals.push_back(std::move(refusal));
  }
  return refusals;
}

void refuse_layers(const std::vector<QuantizedLayer>& layers, const char* what, const char* kinds) {
  if (layers.empty()) throw_error(ErrorKind::unsupported, "no ", what, ": it has no ", kinds);
  throw_error(ErrorKind::unsupported, "no ", what, ":\n", join_few(list_refusals(layers), 8, "\n"));
}

std::string name_layer(const QuantizedLayer& layer) {
  return layer.origin != nullptr && !layer.origin->module.empty() ? layer.origin->module : layer.name;
}

}  // namespace lissome
