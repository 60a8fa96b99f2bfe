#include "lissome/compress/smooth_channels.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "lissome/compress/divide_channels.h"
#include "lissome/compress/layer.h"
#include "lissome/compress/range_histogram.h"

namespace lissome {
namespace {

constexpr std::array kStrengths = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
// Of each value, over all batches: enough to rank strengths, and little to keep.
constexpr int64_t kSampleRows = 128;
// Of a linear: each has a scale of its own, so that some say what all would.
constexpr int64_t kSampleOutputs = 512;
// Of a value that convolutions read: parts of images, each at most this wide in every direction.
constexpr size_t kMostImages = 4;
constexpr int64_t kPart = 24;
// Of each value, over all batches, in the histograms that choose the ranges of trials.
constexpr int64_t kHistogramRows = 2048;
// A channel counts as no smaller than this share of the largest: one that calibration hardly saw move would be blown up
// by its factor the day it does.
constexpr double kLeastShare = 1e-3;
// Decibels that smoothing must win: beyond what a sample tells apart, and where it costs a product, worth that.
constexpr double kLeastGain = 0.5, kLeastGainOfProduct = 1.5;

// A way to divide a value, and how much noise over signal it leaves each of its linears in int8.
struct Trial {
  double strength = 0;       // 0: as it is
  at::Tensor factors;        // f64 [channels], from the rows that are fitted
  RangeHistogram histogram;  // of these rows divided; not for linears that find their scales while running
  std::vector<double> noise;
};

// A layer as trials judge it: of a linear some of its outputs.
struct JudgedLayer {
  Layer layer;
  at::Tensor weight, wanted;  // wanted: f64, what the float form gives for the judged rows
  double signal = 0;          // the squares of it
};

// Of each channel, f32.
struct Extremes {
  at::Tensor low, high;

  void add(const at::Tensor& rows) {
    const auto [lowest, highest] = rows.aminmax(0);
    low = low.defined() ? at::minimum(low, lowest) : lowest;
    high = high.defined() ? at::maximum(high, highest) : highest;
  }
  at::Tensor largest() const { return at::maximum(low.abs(), high.abs()).to(at::kDouble); }
};

// Linears, or convolutions, that read one value, and what calibration saw of it. A strength is judged on other rows
// than it is fitted to, as it will be used: a range that fits tightly to few rows clips the next ones.
struct Siblings {
  std::vector<Layer*> layers;
  at::Tensor columns;  // f64 [channels]: the largest weight that a channel meets
  bool is_conv() const { return layers.front()->is_conv; }
  bool is_fixed() const { return !layers.front()->dynamic; }  // its range comes from calibration
  Extremes fitted, all;
  at::Tensor squares;  // f32 [channels], summed over the fitted rows; for weights in groups
  std::vector<at::Tensor> judged;
  std::vector<Trial> trials;  // the first is the value as it is; empty where nothing can be tried
};

// At most `count` of the rows, evenly spread from a place that changes with `turn`.
at::Tensor take_rows(const at::Tensor& rows, int64_t count, int64_t turn) {
  const int64_t step = std::max<int64_t>(1, (rows.size(0) + count - 1) / count);
  return rows.slice(0, turn % step, rows.size(0), step).clone();
}

bool is_positive(const at::Tensor& numbers) {
  return numbers.isfinite().all().item().toBool() && numbers.max().item().toDouble() > 0;
}

at::Tensor raise_small(const at::Tensor& largest) {
  return largest.clamp_min(largest.max().item().toDouble() * kLeastShare);
}

// Around one, for an overall factor changes nothing.
at::Tensor make_factors(const at::Tensor& inputs, const at::Tensor& columns, double strength) {
  const at::Tensor factors = raise_small(inputs).pow(strength).div(raise_small(columns).pow(1 - strength));
  return factors.div(factors.log().mean().exp());
}

double sum_up(const std::vector<double>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

std::string describe(DividerPlace place) {
  switch (place) {
    case DividerPlace::norm: return "the norm before it";
    case DividerPlace::linear: return "the linear before it";
    case DividerPlace::convolution: return "the convolution before it";
    case DividerPlace::product: return "a product of its own";
  }
  throw_error(ErrorKind::internal, "a place without a name");
}

// Of the noise without smoothing.
double find_largest_share(DividerPlace place) {
  return std::pow(10, -(place == DividerPlace::product ? kLeastGainOfProduct : kLeastGain) / 10);
}

class Smoother {
 public:
  Smoother(const Program& program, std::vector<Layer> layers, const CalibrationBatches& batches,
           const QuantizeOptions& options, const WorkControl& control)
      : program_(program),
        batches_(batches),
        options_(options),
        control_(control),
        uses_(find_uses(program)),
        layers_(std::move(layers)) {
    const std::vector<bool> written = find_written_values(program);
    for (Layer& layer : layers_) {
      // What is written in place is not one value to all who read it.
      const bool changes = !written.empty() && written[static_cast<size_t>(layer.input)];
      const bool wanted = is_linear(program.nodes[layer.position]) || (layer.is_conv && !layer.transposed);
      if (wanted && layer.reason.empty() && !changes) siblings_[layer.input].layers.push_back(&layer);
    }
    // A product for each pixel would cost more than it gains. Convolutions beside linears have other channels.
    std::erase_if(siblings_, [&](const auto& entry) {
      const Siblings& group = entry.second;
      const bool any = std::ranges::any_of(group.layers, &Layer::is_conv);
      return any && find_place(entry.first, group) != DividerPlace::convolution;
    });
  }

  SmoothedChannels run() {
    visit_rows([&](Siblings& group, const at::Tensor& rows, size_t turn) { observe(group, rows, turn); });
    for (auto& [value, group] : siblings_) make_trials(group);
    if (options_.range != RangeMethod::minimum_maximum) {
      visit_rows([&](Siblings& group, const at::Tensor& rows, size_t turn) {
        if (!is_fitted(turn) || !group.is_fixed()) return;
        const at::Tensor some = take_rows(rows, share_rows(kHistogramRows), static_cast<int64_t>(turn / 2));
        for (Trial& trial : group.trials) trial.histogram.count(divide(some, trial));
      });
    }
    SmoothedChannels result;
    for (auto& [value, group] : siblings_) {
      if (control_.stopped()) break;
      smooth(value, group, result);
    }
    return result;
  }

 private:
  // Every other batch; a single one serves for both.
  static bool is_fitted(size_t turn) { return turn % 2 == 0; }
  bool is_judged(size_t turn) const { return turn % 2 == 1 || batches_.size() == 1; }

  // Every value that linears read, as rows of channels, batch by batch.
  void visit_rows(const std::function<void(Siblings&, const at::Tensor&, size_t turn)>& visit) {
    std::map<ValueId, std::vector<Layer*>> by_input;
    for (auto& [value, group] : siblings_) by_input[value] = {group.layers.front()};
    for (size_t turn = 0; turn < batches_.size(); ++turn) {
      if (control_.stopped()) return;
      control_.report({"computation", "int8: observing channels",
                       static_cast<double>(turn) / static_cast<double>(batches_.size()), -1});
      visit_layer_inputs(program_, by_input, batches_[turn], [&](Layer& layer, const at::Tensor& input) {
        if (input.numel() == 0) return;
        Siblings& group = siblings_.at(layer.input);
        const at::Tensor rows = group.is_conv() ? input.movedim(1, -1) : input;
        visit(group, rows.reshape({-1, rows.size(-1)}), turn);
        if (group.is_conv() && is_judged(turn) && group.trials.empty()) keep_image(group, input);
      });
    }
  }

  // The middle of one image of a batch, where it has the size of the first. Before there are trials, for they judge it.
  void keep_image(Siblings& group, const at::Tensor& images) const {
    at::Tensor image = images.narrow(0, 0, 1);
    for (int64_t d = 2; d < image.dim(); ++d) {
      const int64_t size = std::min(image.size(d), find_least_part(group, d));
      image = image.narrow(d, (image.size(d) - size) / 2, size);
    }
    if (group.judged.size() < kMostImages && (group.judged.empty() || image.sizes() == group.judged[0].sizes()))
      group.judged.push_back(image.clone());
  }

  // All kernels find windows in it.
  int64_t find_least_part(const Siblings& group, int64_t dimension) const {
    int64_t part = kPart;
    for (const Layer* layer : group.layers) {
      const Argument& dilations = program_.nodes[layer->position].argument("dilation");
      const auto* const dilation = dilations.list().at(static_cast<size_t>(dimension - 2)).get<int64_t>();
      const int64_t kernel = find_weight(*layer).size(dimension);
      part = dilation == nullptr ? std::numeric_limits<int64_t>::max() : std::max(part, 2 * kernel * *dilation);
    }
    return part;
  }

  void observe(Siblings& group, const at::Tensor& rows, size_t turn) const {
    group.all.add(rows);
    if (is_fitted(turn)) group.fitted.add(rows);
    if (is_fitted(turn) && group.layers.front()->group_bits > 0) {
      const at::Tensor squares = rows.pow(2).sum(0);
      group.squares = group.squares.defined() ? group.squares.add(squares) : squares;
    }
    if (group.is_conv() || !is_judged(turn) || static_cast<int64_t>(group.judged.size()) >= kSampleRows) return;
    group.judged.push_back(take_rows(rows, share_rows(kSampleRows), static_cast<int64_t>(turn / 2)));
  }

  // Of so many rows in all, those of one of the batches, every other of which gives some.
  int64_t share_rows(int64_t all) const {
    return std::max<int64_t>(1, 2 * all / static_cast<int64_t>(batches_.size()));
  }

  at::Tensor find_weight(const Layer& layer) const {
    return find_constant(program_, program_.nodes[layer.position].argument("weight"));
  }

  void make_trials(Siblings& group) const {
    if (group.judged.empty() || !group.fitted.low.defined()) return;
    for (const Layer* layer : group.layers) {
      const at::Tensor columns = find_columns(find_weight(*layer).abs(), group).to(at::kDouble);
      group.columns = group.columns.defined() ? at::maximum(group.columns, columns) : columns;
    }
    const at::Tensor inputs = group.fitted.largest();
    if (!is_positive(inputs) || !is_positive(group.all.largest()) || !is_positive(group.columns)) return;
    group.trials.emplace_back();
    for (const double strength : kStrengths) {
      group.trials.emplace_back();
      group.trials.back().strength = strength;
      group.trials.back().factors = make_factors(inputs, group.columns, strength);
    }
    for (Trial& trial : group.trials) {
      trial.histogram.widen(at::cat({divide(group.fitted.low, trial), divide(group.fitted.high, trial)}));
    }
  }

  // The largest weight of each channel; a group of a convolution has channels of its own.
  static at::Tensor find_columns(const at::Tensor& weight, const Siblings& group) {
    if (!group.is_conv()) return weight.amax({0});
    const int64_t channels = group.fitted.low.size(0), groups = channels / weight.size(1);
    return weight.reshape({groups, weight.size(0) / groups, weight.size(1), -1}).amax({1, 3}).reshape({-1});
  }

  // Rows of channels.
  static at::Tensor divide(const at::Tensor& rows, const Trial& trial) {
    return trial.strength > 0 ? rows.to(at::kDouble).div(trial.factors).to(at::kFloat) : rows;
  }
  static at::Tensor divide_images(const at::Tensor& images, const Trial& trial) {
    return divide(images.movedim(1, -1), trial).movedim(-1, 1).contiguous();
  }
  // What a weight is multiplied by; undefined for nothing.
  static at::Tensor find_factors(const at::Tensor& weight, const Siblings& group, const Trial& trial) {
    return group.is_conv() && trial.strength > 0 ? spread_factors(trial.factors, weight) : trial.factors;
  }

  std::vector<JudgedLayer> find_judged(const Siblings& group, const at::Tensor& rows) const {
    std::vector<JudgedLayer> judged;
    for (const Layer* layer : group.layers) {
      JudgedLayer& made = judged.emplace_back(JudgedLayer{*layer, find_weight(*layer), {}});
      made.wanted = (layer->is_conv ? run_float(program_, *layer, rows) : run_sample(made, rows)).to(at::kDouble);
      made.signal = made.wanted.pow(2).sum().item().toDouble();
    }
    return judged;
  }

  // Leaves a linear some of its outputs, and gives them for the rows.
  static at::Tensor run_sample(JudgedLayer& linear, const at::Tensor& rows) {
    linear.weight = take_rows(linear.weight, kSampleOutputs, 0);
    at::Tensor& bias = linear.layer.bias;
    if (bias.defined()) bias = take_rows(bias, kSampleOutputs, 0);
    return at::linear(rows, linear.weight, bias.defined() ? std::optional(bias) : std::nullopt);
  }

  // What correcting the bias will take off is no noise.
  void measure(const Siblings& group, std::span<const JudgedLayer> judged, const at::Tensor& rows, Trial& trial) const {
    const at::Tensor input = group.is_conv() ? divide_images(rows, trial) : divide(rows, trial);
    const ActivationRange range = trial.histogram.choose_range(options_.range);
    if (group.is_fixed() && !range.has_scale()) {
      trial.noise.assign(group.layers.size(), std::numeric_limits<double>::quiet_NaN());
      return;
    }
    for (const JudgedLayer& layer : judged) {
      Layer divided = layer.layer;
      divided.range = range;
      const bool in_groups = divided.group_bits > 0;
      if (in_groups) divided.importance = divide(divide(group.squares, trial), trial);
      quantize_weight(layer.weight, divided, find_factors(layer.weight, group, trial));
      const at::Tensor error = layer.wanted.sub(run_quantized(program_, divided, input).to(at::kDouble));
      const at::Tensor by_output = group.is_conv() ? error.movedim(1, -1).reshape({-1, error.size(1)}) : error;
      const at::Tensor noise = in_groups ? error : by_output.sub(by_output.mean({0}, true));
      trial.noise.push_back(noise.pow(2).sum().item().toDouble() / layer.signal);
    }
  }

  static std::vector<size_t> list_positions(const Siblings& group) {
    std::vector<size_t> positions;
    for (const Layer* layer : group.layers) positions.push_back(layer->position);
    return positions;
  }
  DividerPlace find_place(ValueId value, const Siblings& group) const {
    return find_divider_place(program_, uses_, value, list_positions(group));
  }

  void smooth(ValueId value, Siblings& group, SmoothedChannels& result) const {
    if (group.trials.empty()) return;
    const DividerPlace place = find_place(value, group);
    const at::Tensor rows = at::cat(std::exchange(group.judged, {}));
    const std::vector<JudgedLayer> judged = find_judged(group, rows);
    const Trial* best = nullptr;
    double bound = 0;
    for (Trial& trial : group.trials) {
      if (control_.stopped()) return;
      measure(group, judged, rows, trial);
      const double noise = sum_up(trial.noise);
      // Written so that NaN is never chosen.
      if (best != nullptr && !(noise < bound)) continue;
      bound = best == nullptr ? noise * find_largest_share(place) : noise;
      best = &trial;
    }
    if (best->strength == 0) return;
    result.divisions.push_back(
        {value, list_positions(group), make_factors(group.all.largest(), group.columns, best->strength)});
    for (size_t i = 0; i < group.layers.size(); ++i) {
      result.layers[group.layers[i]->name] = {best->strength, find_signal_to_noise(1, group.trials.front().noise[i]),
                                              find_signal_to_noise(1, best->noise[i]), describe(place)};
    }
  }

  const Program& program_;
  const CalibrationBatches& batches_;
  const QuantizeOptions& options_;
  const WorkControl& control_;
  const Uses uses_;
  std::vector<Layer> layers_;
  std::map<ValueId, Siblings> siblings_;
};

}  // namespace

SmoothedChannels smooth_channels(const Program& program, std::vector<Layer> layers, const CalibrationBatches& batches,
                                 const QuantizeOptions& options, const WorkControl& control) {
  return Smoother(program, std::move(layers), batches, options, control).run();
}

}  // namespace lissome
