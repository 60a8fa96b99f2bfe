// Face of compress: programs with smaller numbers. Quantized data stay explicit: u8/s8 tensors with their scales beside
// them, so that a compressed program prints, interprets, compares and is undone like any other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lissome/measure.h"
#include "lissome/program.h"

namespace lissome {

// Batches of model inputs, in the program's order. Only what calibration may see: never validation data.
using CalibrationBatches = std::vector<std::vector<c10::IValue>>;

// How the range of an activation is chosen from what calibration saw.
enum class RangeMethod : uint8_t {
  minimum_maximum,     // everything seen
  percentile,          // all but 1e-4 of the values on either side
  mean_squared_error,  // the range that quantizes the histogram with the least squared error
};

struct QuantizeOptions {
  RangeMethod range = RangeMethod::mean_squared_error;
  // Linears take a scale per row of their input, found while running: dearer, and far closer on transformers.
  bool dynamic_linears = false;
  // Layers never quantized: patterns over module paths ("encoder.layer.0.*").
  std::vector<std::string> keep_float;
};

// What was done about channels that are far larger than others before a linear was quantized (SmoothQuant, Xiao et al.
// 2022, arXiv 2211.10438): what it reads is divided by a factor a channel, and its columns are multiplied by them.
struct Smoothing {
  // Channel j's factor is (largest input)^strength / (largest weight)^(1 - strength); 0: left alone.
  double strength = 0;
  // Decibels of the layer's output in int8, on calibration rows that chose neither factors nor ranges.
  double signal_to_noise_before = 0, signal_to_noise_after = 0;
  std::string place;  // what divides: "the norm before it", "the linear before it" or "a product of its own"
};

// What became of one linear, convolution or recurrent layer.
struct QuantizedLayer {
  std::string name;  // the printed name of the result
  std::shared_ptr<const Origin> origin;
  std::string op;
  double signal_to_noise = 0;  // decibels of the layer's output before activation; 0 when it was not measured
  bool quantized = false;
  std::string reason;  // why it stayed in float
  Smoothing smoothing;
};

struct Quantized {
  Program program;
  std::vector<QuantizedLayer> layers;
};

// int8: per-channel symmetric s8 weights, u8 activations (one scale a tensor from calibration, or one a row), bias
// corrected by the mean error that calibration saw (Nagel et al. 2019, arXiv 1906.04721). Linears are smoothed first
// where that lowers their error. Layers that follow each other hand over u8. LSTM and GRU are split into layers, which
// find the scales of their states while running. Calibrates once; programs with more or fewer layers in int8 are then
// made without running a batch.
class Int8Calibration {
 public:
  // `program` is prepared (see prepare_inference). Throws invalid_input when there is no batch.
  Int8Calibration(const std::shared_ptr<const Program>& program, const CalibrationBatches& batches,
                  const QuantizeOptions& options = {}, const WorkControl& control = {});

  // A layer whose output keeps less signal over quantization noise than this, in decibels, stays in float.
  Quantized quantize(double least_signal_to_noise) const;

 private:
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const std::vector<struct ChannelDivision>> divisions_;  // of the values that smoothing pays for
  std::shared_ptr<const std::vector<struct Layer>> layers_;               // of the program with all of them
  std::shared_ptr<const std::map<std::string, struct ActivationRange>> byte_ranges_;  // of what lies between layers
};
// Below this a layer is hardly worth its noise.
constexpr double kLeastSignalToNoise = 18;
// Both steps at once.
Quantized quantize_int8(const Program& program, const CalibrationBatches& batches, const QuantizeOptions& options = {},
                        double least_signal_to_noise = kLeastSignalToNoise);

// Attention of f32 operands becomes lissome::attention_int8, whose products are of bytes with scales that are found
// while running. Returns how many did. Nothing is measured here: it is a step of its own, to be judged as one.
int quantize_attention(Program& program);

// bf16 where it pays: products, convolutions and what stands between them; sums over many terms stay in f32 inside the
// ops. Casts are explicit nodes; outputs keep their dtype.
struct Bf16Options {
  std::vector<std::string> keep_float;  // patterns over module paths
};
Program convert_bf16(const Program& program, const Bf16Options& options = {});

// "23.4 dB"
std::string format_decibels(double value);

// ---- parts that other searches use
// -----------------------------------------------------------------------------------
struct ActivationRange {
  double low = 0, high = 0;  // low <= 0 <= high, so that zero is exact
  double scale() const { return (high - low) / 255; }
  int64_t zero_point() const;
};
// The ranges of these tensor values over the batches. Values that stay empty get {0, 0}.
std::vector<ActivationRange> observe_ranges(const Program& program, const std::vector<ValueId>& values,
                                            const CalibrationBatches& batches, RangeMethod method,
                                            const WorkControl& control = {});

}  // namespace lissome
