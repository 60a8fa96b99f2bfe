// Face of compress: converts programs to lower precision. Quantized data is explicit: u8 and s8 tensors with their
// scales beside them, so that a compressed program can be printed, interpreted, compared and undone like any other.
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

// Batches of model inputs for calibration, in the program's order. They must not contain validation data.
using CalibrationBatches = std::vector<std::vector<c10::IValue>>;

// The range of an activation that is quantized to u8.
struct ActivationRange {
  double low = 0, high = 0;  // low <= 0 <= high, so that zero is exact
  // Of the values in calibration that are not zero: the share that lies outside, and the largest magnitude over that
  // which 99.9 % of them stay within.
  double clipped = 0, reach = 1;
  double scale() const { return (high - low) / 255; }
  bool has_scale() const;  // whether it is positive and finite in f32
  int64_t zero_point() const;
};
// How the range of an activation is chosen from its values in calibration.
enum class RangeMethod : uint8_t {
  minimum_maximum,     // the range of all values
  average,             // the mean of the batches' ranges
  percentile,          // leaves out 1e-4 of the values on either side
  entropy,             // the range whose levels keep most of the histogram's information (Migacz 2017)
  mean_squared_error,  // the range that quantizes the histogram with the least squared error
};
// "minmax", "average", "percentile", "entropy" or "mse". Throws usage for other words.
RangeMethod parse_range_method(const std::string& word);

// How weights of 4 bits are rounded where data calibrate them.
enum class Rounding : uint8_t {
  nearest,
  gptq,  // columns make up for each other (Frantar et al. 2022, arXiv 2210.17323), where that lowers the error
};
// "nearest" or "gptq". Throws usage for other words.
Rounding parse_rounding(const std::string& word);

enum class QuantizeKind : uint8_t {
  fixed,    // a scale for each activation, from calibration
  trained,  // the same, with weights and scales that were trained for it
  dynamic,  // linears find a scale for each row while running
  weight,   // only weights are quantized
};
// "static", "qat", "dynamic" or "weight". Throws usage for other words.
QuantizeKind parse_quantize_kind(const std::string& word);

struct QuantizeOptions {
  RangeMethod range = RangeMethod::mean_squared_error;
  // Linears compute a scale for each row of their input while running: slower, and much more accurate on transformers.
  bool dynamic_linears = false;
  Rounding rounding = Rounding::gptq;
  // Patterns over module paths ("encoder.layer.0.*"): the only layers that are quantized (empty: all), and layers that
  // never are.
  std::vector<std::string> only, keep_float;
};

// How channels that are far larger than others were smoothed before a linear was quantized (SmoothQuant, Xiao et al.
// 2022, arXiv 2211.10438): its input is divided by a factor for each channel, and its columns are multiplied by these
// factors.
struct Smoothing {
  // Channel j's factor is (largest input)^strength / (largest weight)^(1 - strength); 0: not smoothed.
  double strength = 0;
  // Signal to noise of the layer's int8 output in decibels, on calibration rows that chose neither factors nor ranges.
  double signal_to_noise_before = 0, signal_to_noise_after = 0;
  std::string place;  // where the division is: "the norm before it", "the linear before it" or "a product of its own"
};

// The result for one linear, convolution or recurrent layer.
struct QuantizedLayer {
  std::string name;       // the printed name of the result
  ActivationRange range;  // of its input, {0, 0} where scales are computed while running
  std::shared_ptr<const Origin> origin;
  std::string op;
  double signal_to_noise = 0;  // decibels of the layer's output before activation; 0 if not measured
  bool quantized = false;
  std::string reason;  // why it stays in float
  Smoothing smoothing;
};

// Its module where that is known, else the name of its result.
std::string name_layer(const QuantizedLayer& layer);
// "20 of 21 layers": how many are quantized.
std::string count_layers(const std::vector<QuantizedLayer>& layers);

// "NAME stays in float: why" for each layer that is not quantized; once for a module that is called several times.
std::vector<std::string> list_refusals(const std::vector<QuantizedLayer>& layers);
// Throws unsupported with these lines, or what is missing where there is no layer. `what`: "layer of the model can be
// int8", say, and `kinds` those that can.
[[noreturn]] void refuse_layers(const std::vector<QuantizedLayer>& layers, const char* what, const char* kinds);

struct Quantized {
  Program program;
  std::vector<QuantizedLayer> layers;
};

// A program that gives what its int8 form will, so that training makes up for the rounding: inputs and weights of
// linears and convolutions are rounded to 8 bits, with gradients of the values (straight through) and of the scales
// (learned step sizes, Esser et al. 2020, arXiv 1902.08153). Batch norm behind a layer keeps its statistics and scales
// the weight before that is rounded; weight, bias, gamma and beta still train. Scales start from the ranges of the
// batches and from the largest weights, and train as parameters NAME.input_scale and NAME.weight_scale, factors of
// where they start. Its weights are copies. Eval form: dropout is off. Once trained, it goes through
// prepare_inference() to Int8Calibration. Throws as Int8Calibration, and unsupported for a model without such a layer.
Program insert_fake_quantization(const Program& program, const CalibrationBatches& batches,
                                 const QuantizeOptions& options = {}, const WorkControl& control = {});

// int8: per-channel symmetric s8 weights, u8 activations (one scale a tensor from calibration, or one a row), bias
// corrected by the mean error in calibration (Nagel et al. 2019, arXiv 1906.04721). Linears are smoothed first if that
// lowers their error. Adjacent layers pass u8. LSTM and GRU are split into layers, which compute the scales of their
// states while running. Calibrates once; programs with more or fewer int8 layers are then made without running a batch.
// What the program itself rounds to 256 numbers (fake quantization of insert_fake_quantization() or PyTorch,
// dequantize(quantize(x)) of a quantized export; lissome::dequantize once prepared) keeps these: a layer that reads it
// takes its integers and is not smoothed, every other reader gets it rounded. Weights that are multiples of a scale
// keep it.
class Int8Calibration {
 public:
  // `program` is prepared (see prepare_inference). Throws invalid_input if there is no batch where no fake quantization
  // says a range, and usage for a pattern that fits no layer.
  Int8Calibration(const std::shared_ptr<const Program>& program, const CalibrationBatches& batches,
                  const QuantizeOptions& options = {}, const WorkControl& control = {});

  // A layer whose output has a lower ratio of signal to quantization noise, in decibels, stays in float.
  Quantized quantize(double least_signal_to_noise) const;

 private:
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const std::vector<struct ChannelDivision>> divisions_;  // of the values that smoothing improves
  std::shared_ptr<const std::vector<struct Layer>> layers_;               // of the program with all divisions
  std::shared_ptr<const std::map<std::string, struct ActivationRange>> int8_ranges_;  // of values between layers
};
// Default of the lowest ratio, in decibels.
constexpr double kLeastSignalToNoise = 18;
// Calibrates and quantizes at once.
Quantized quantize_int8(const Program& program, const CalibrationBatches& batches, const QuantizeOptions& options = {},
                        double least_signal_to_noise = kLeastSignalToNoise);

// Weights of linears and embeddings in 8 bits (a bf16 scale for 128 inputs, or 64 or 32 where these do not
// divide: 8.125 bits) or 4 (a scale for 32: 4.5 bits). Linears multiply them by s8 that they make of f32 rows while
// running, a scale for 32 of them too. The scales lose least of the weight. With batches, 4 bits lose less: channels of
// large inputs get large weights (AWQ, Lin et al. 2023, arXiv 2306.00978) and columns make up for what rounding others
// loses, each where it lowers the error on rows that it was not fitted to; a layer's `signal_to_noise` is then that of
// what it gives, without the rounding of its input. Of the options the patterns and the rounding count. `program` is
// prepared. Throws usage for other bits than 4 and 8, and for a pattern that fits no layer.
Quantized quantize_weights(const Program& program, int bits, const CalibrationBatches& batches = {},
                           const QuantizeOptions& options = {}, const WorkControl& control = {});

// The share of the bytes of the program's weights that quantize_weights() can pack.
double find_packable_share(const Program& program);

// Replaces attention of f32 operands by lissome::attention_int8, whose products are in int8 with scales that are
// computed while running. Returns the number of replaced nodes. It measures nothing: the caller judges it as a step of
// its own.
int quantize_attention(Program& program);

// Converts products, convolutions and the nodes between them to bf16. Sums over many terms stay in f32 inside the ops.
// Casts are explicit nodes; outputs keep their dtype.
struct Bf16Options {
  std::vector<std::string> keep_float;  // patterns over module paths
};
Program convert_bf16(const Program& program, const Bf16Options& options = {});
// Whether a node gives bf16. None does where no product is f32: in a model of f64, or one of elementwise ops alone.
bool computes_in_bf16(const Program& program);

// "23.4 dB"
std::string format_decibels(double value);

// ---- parts for other searches
// -----------------------------------------------------------------------------------
// The ranges of these tensor values over the batches. Values without elements get {0, 0}.
std::vector<ActivationRange> observe_ranges(const Program& program, const std::vector<ValueId>& values,
                                            const CalibrationBatches& batches, RangeMethod method,
                                            const WorkControl& control = {});

}  // namespace lissome
