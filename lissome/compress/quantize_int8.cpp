// Post-training int8. Flow: smooth what linears read; find the linears, convolutions and recurrent layers of the
// prepared program; observe the ranges of their inputs; quantize each alone, correct its bias, measure its signal to
// noise; rewrite those that keep enough; let neighbours hand over u8.
#include <ATen/core/ivalue.h>
#include <ATen/ops/stack.h>

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

struct Sums {
  double signal = 0, noise = 0;
};

// Rows of a linear, evenly spread.
at::Tensor take_measured(const Layer& layer, const at::Tensor& input) {
  if (layer.is_conv || layer.recurrent || input.dim() == 0) return input;
  const at::Tensor rows = input.reshape({-1, input.size(-1)});
  return rows.slice(0, 0, rows.size(0), (rows.size(0) + kMeasuredRows - 1) / kMeasuredRows);
}

// What each layer's float and quantized forms give on the same float inputs, before activation and residual.
void measure_layers(const Program& program, std::vector<Layer>& layers, const CalibrationBatches& batches,
                    const WorkControl& control,
                    const std::function<void(Layer&, const at::Tensor&, const at::Tensor&)>& visit) {
  std::map<ValueId, std::vector<Layer*>> by_input;
  for (Layer& layer : layers) {
    if (layer.reason.empty()) by_input[layer.input].push_back(&layer);
  }
  const size_t count = std::min(kMeasuredBatches, batches.size());
  for (size_t i = 0; i < count; ++i) {
    if (control.stopped()) return;
    control.report({"computation", "int8: measuring layers", static_cast<double>(i) / static_cast<double>(count), -1});
    visit_layer_inputs(program, by_input, batches[i], [&](Layer& layer, const at::Tensor& input) {
      if (input.numel() == 0) return;
      const at::Tensor some = take_measured(layer, input);
      visit(layer, run_float(program, layer, some), run_quantized(program, layer, some));
    });
  }
}

// Means of the errors of a few blocks of positions, each f64 [channels].
void add_block_means(const Layer& layer, const at::Tensor& errors, std::vector<at::Tensor>& means) {
  constexpr int64_t kBlocks = 16;
  const at::Tensor rows = errors.movedim(layer.is_conv ? 1 : -1, -1).reshape({-1, errors.size(layer.is_conv ? 1 : -1)});
  for (const at::Tensor& block : rows.chunk(kBlocks)) means.push_back(block.mean(0));
}

// By the median of means (Nemirovsky and Yudin 1983): what a few large errors leave in a mean would be added to every
// answer.
void correct_biases(const Program& program, std::vector<Layer>& layers, const CalibrationBatches& batches,
                    const WorkControl& control) {
  std::map<Layer*, std::vector<at::Tensor>> means;
  measure_layers(program, layers, batches, control, [&](Layer& layer, const at::Tensor& wanted, const at::Tensor& got) {
    if (layer.recurrent) return;  // gates add what the inputs contribute: no bias of its own
    add_block_means(layer, wanted.to(at::kDouble).sub(got.to(at::kDouble)), means[&layer]);
  });
  for (auto& [layer, of_layer] : means) {
    const at::Tensor correction = std::get<0>(at::stack(of_layer).median(0));
    const at::Tensor base = layer->bias.defined() ? layer->bias.to(at::kDouble) : at::Tensor();
    layer->bias = (base.defined() ? base.add(correction) : correction).to(at::kFloat);
  }
}

void judge_layers(const Program& program, std::vector<Layer>& layers, const CalibrationBatches& batches,
                  const WorkControl& control) {
  std::map<Layer*, Sums> sums;
  measure_layers(program, layers, batches, control, [&](Layer& layer, const at::Tensor& wanted, const at::Tensor& got) {
    const at::Tensor signal = wanted.to(at::kDouble);
    Sums& sum = sums[&layer];
    sum.signal += signal.pow(2).sum().item().toDouble();
    sum.noise += signal.sub(got.to(at::kDouble)).pow(2).sum().item().toDouble();
  });
  for (auto& [layer, sum] : sums) {
    layer->signal_to_noise = find_signal_to_noise(sum.signal, sum.noise);
  }
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
  correct_biases(divided, *layers, batches, control);
  judge_layers(divided, *layers, batches, control);
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
