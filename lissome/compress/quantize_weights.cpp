// Weights of 4 or 8 bits: linears whose weight is unpacked in registers while they run. For models that reading weights
// bounds, language models that give one token at a time above all.
#include <ATen/core/ivalue.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <map>
#include <set>

#include "lissome/compress.h"
#include "lissome/compress/int8_ops.h"
#include "lissome/compress/layer.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

constexpr int64_t kGroup = 32;  // inputs, of a row, and of a weight of 4 bits
constexpr int kTriedScales = 20;
constexpr double kLeastScale = 0.6;  // of the one that holds the largest weight

struct GroupWeight {
  at::Tensor numbers, scales;  // f32 [outputs, groups, size], whole; f32 [outputs, groups, 1], which bf16 holds
  double signal_to_noise = 0;  // dB
};

// Inputs that share a scale. Numbers of 8 bits lose little by sharing it with more.
int64_t choose_group(int64_t inputs, int bits) {
  if (bits == 8 && inputs % (4 * kGroup) == 0) return 4 * kGroup;
  return bits == 8 && inputs % (2 * kGroup) == 0 ? 2 * kGroup : kGroup;
}

// The mean square of each input of a layer over the batches, f32 [inputs].
using InputSquares = std::map<ValueId, at::Tensor>;

InputSquares measure_inputs(const Program& program, std::vector<Layer>& layers, const CalibrationBatches& batches,
                            const WorkControl& control) {
  std::map<ValueId, std::vector<Layer*>> first_reader;
  for (Layer& layer : layers) {
    if (layer.reason.empty() && layer.input != ValueId::none)
      first_reader.try_emplace(layer.input, std::vector<Layer*>{&layer});
  }
  InputSquares sums;
  for (size_t i = 0; i < batches.size() && !control.stopped(); ++i) {
    control.report(
        {"computation", "weights: reading data", static_cast<double>(i) / static_cast<double>(batches.size()), -1});
    visit_layer_inputs(program, first_reader, batches[i], [&](Layer& layer, const at::Tensor& input) {
      const at::Tensor squares = input.to(at::kFloat).reshape({-1, input.size(-1)}).pow(2).mean(0).nan_to_num(0, 0, 0);
      at::Tensor& sum = sums[layer.input];
      sum = sum.defined() ? sum.add(squares) : squares;
    });
  }
  return sums;
}

// The scale of each group that loses least, of a row of candidates: the one that holds the largest weight exactly, at
// the end of the numbers that reaches further, and smaller ones, which clip it.
GroupWeight round_groups(const at::Tensor& weight, const at::Tensor& importance, int bits) {
  const double most = bits == 4 ? 7 : 127;
  const int64_t size = choose_group(weight.size(1), bits);
  const at::Tensor groups = weight.reshape({weight.size(0), -1, size});
  const at::Tensor shares = importance.defined() ? importance.reshape({1, -1, size}) : at::Tensor();
  const auto weigh = [&](const at::Tensor& squares) {
    return (shares.defined() ? squares.mul(shares) : squares).sum(-1, true);
  };
  const at::Tensor largest = groups.gather(-1, groups.abs().argmax(-1, true));
  GroupWeight best;
  at::Tensor least;
  for (int i = 0; i < kTriedScales; ++i) {
    const double share = 1 - (1 - kLeastScale) * i / (kTriedScales - 1);
    at::Tensor scale = largest.mul(-share / (most + 1)).to(at::kBFloat16).to(at::kFloat);
    scale = at::where(scale.abs().lt(1e-30), 1.0, scale).to(at::kFloat);
    const at::Tensor numbers = groups.div(scale).round().clamp(-most - 1, most);
    const at::Tensor error = weigh(numbers.mul(scale).sub(groups).pow(2));
    if (!least.defined()) {
      best = {numbers, scale, 0}, least = error;
      continue;
    }
    const at::Tensor better = error.lt(least);
    best.numbers = at::where(better, numbers, best.numbers);
    best.scales = at::where(better, scale, best.scales);
    least = at::where(better, error, least);
  }
  const double noise = least.to(at::kDouble).sum().item().toDouble();
  const double signal = weigh(groups.pow(2)).to(at::kDouble).sum().item().toDouble();
  best.signal_to_noise = find_signal_to_noise(signal, noise);
  return best;
}

// As lissome::linear_group takes it.
at::Tensor pack_numbers(const at::Tensor& numbers, int64_t outputs, int bits) {
  const at::Tensor rows = numbers.reshape({outputs, -1});
  if (bits == 8) return rows.to(at::kChar).contiguous();
  const at::Tensor halves = at::where(rows.lt(0), rows.add(16), rows).reshape({outputs, -1, 2});
  return halves.select(-1, 0).add(halves.select(-1, 1).mul(16)).to(at::kByte).contiguous();
}

bool is_embedding(const Node& node) { return node.is("aten::embedding"); }
bool reads_weight(const Node& node) {
  return is_layer(node) || is_embedding(node) || node.op.name().starts_with("aten::embedding_bag");
}

std::string refuse_weight(const at::Tensor& weight) {
  if (!weight.defined()) return "its weight is not constant";
  if (weight.scalar_type() != at::kFloat || weight.dim() != 2) return "its weight is no matrix of f32";
  if (weight.size(1) % kGroup != 0)
    return "its rows have " + std::to_string(weight.size(1)) + " numbers, no multiple of " + std::to_string(kGroup);
  return refuse_infinite(weight, "weight");
}

// Linears first: an embedding that shares their weight takes it as the data weigh it for them.
std::vector<Layer> find_readers(const Program& program, const QuantizeOptions& options) {
  std::vector<Layer> layers;
  for (const bool embeddings : {false, true}) {
    for (size_t position = 0; position < program.nodes.size(); ++position) {
      const Node& node = program.nodes[position];
      if (!reads_weight(node) || is_embedding(node) != embeddings) continue;
      Layer layer;
      layer.position = position;
      layer.name = program.value(node.results.front()).name;
      if (is_linear(node)) layer.input = find_input(node);
      layer.reason = !is_linear(node) && !embeddings ? "only linears and embeddings unpack their weight"
                     : is_kept(node, options)        ? "kept in float by request"
                                                     : refuse_weight(find_constant(program, node.argument("weight")));
      layers.push_back(std::move(layer));
    }
  }
  return layers;
}

class WeightRewriter {
 public:
  WeightRewriter(const Program& program, const InputSquares& squares, int bits)
      : result_(program), squares_(squares), bits_(bits) {}

  void rewrite(Layer& layer) {
    const Node before = result_.nodes[layer.position];
    const Made& made = pack(before.argument("weight").value(), layer.input);
    layer.signal_to_noise = made.signal_to_noise;
    Node& node = result_.nodes[layer.position];
    if (is_embedding(before)) {
      node.op = Op::find("lissome::embedding_group");
      node.arguments = {made.weight, made.scales, before.argument("indices")};
      return;
    }
    const Epilogue epilogue = read_epilogue(before);
    node.op = Op::find("lissome::linear_group");
    node.arguments = {layer.input,         made.weight,      made.scales, before.argument("bias"),
                      epilogue.activation, epilogue.residual};
  }

  Program take() {
    remove_unread_weights(result_);
    return std::move(result_);
  }

 private:
  struct Made {
    ValueId weight = ValueId::none, scales = ValueId::none;
    double signal_to_noise = 0;
  };

  // Once, however many nodes read the weight; `input`: none for an embedding.
  const Made& pack(ValueId id, ValueId input) {
    auto [made, is_new] = made_.try_emplace(id);
    if (!is_new) return made->second;
    const Weight& weight = *result_.find_weight(id);
    const at::Tensor tensor = weight.tensor;
    const std::string name = weight.name + ".group" + std::to_string(bits_);
    const auto importance = squares_.find(input);
    const GroupWeight rounded =
        round_groups(tensor, importance == squares_.end() ? at::Tensor() : importance->second, bits_);
    const at::Tensor scales = rounded.scales.reshape({tensor.size(0), -1}).to(at::kBFloat16).contiguous();
    const at::Tensor numbers = pack_numbers(rounded.numbers, tensor.size(0), bits_);
    made->second = {result_.add_weight(name, numbers, WeightRole::constant),
                    result_.add_weight(name + ".scales", scales, WeightRole::constant), rounded.signal_to_noise};
    return made->second;
  }

  Program result_;
  const InputSquares& squares_;
  int bits_;
  std::map<ValueId, Made> made_;
};

}  // namespace

WeightCalibration::WeightCalibration(std::shared_ptr<const Program> program, const CalibrationBatches& batches,
                                     const QuantizeOptions& options, const WorkControl& control)
    : program_(std::move(program)) {
  check_patterns(*program_, options, reads_weight);
  std::vector<Layer> layers = find_readers(*program_, options);
  squares_ = std::make_shared<const InputSquares>(measure_inputs(*program_, layers, batches, control));
  layers_ = std::make_shared<const std::vector<Layer>>(std::move(layers));
}

Quantized WeightCalibration::quantize(int bits) const {
  if (bits != 4 && bits != 8) throw_error(ErrorKind::usage, "weights can have 4 or 8 bits, not ", bits);
  WeightRewriter rewriter(*program_, *squares_, bits);
  Quantized result;
  for (Layer layer : *layers_) {
    const Node& node = program_->nodes[layer.position];
    if (layer.reason.empty()) rewriter.rewrite(layer);
    QuantizedLayer row;
    row.name = layer.name, row.origin = node.origin, row.op = node.op.name();
    row.signal_to_noise = layer.signal_to_noise, row.quantized = layer.reason.empty(), row.reason = layer.reason;
    result.layers.push_back(std::move(row));
  }
  result.program = rewriter.take();
  return result;
}

Quantized quantize_weights(const Program& program, int bits, const CalibrationBatches& batches,
                           const QuantizeOptions& options, const WorkControl& control) {
  return WeightCalibration(std::make_shared<const Program>(program), batches, options, control).quantize(bits);
}

double find_packable_share(const Program& program) {
  std::set<ValueId> packable;
  for (const Node& node : program.nodes) {
    if (!is_linear(node) && !is_embedding(node)) continue;
    if (refuse_weight(find_constant(program, node.argument("weight"))).empty())
      packable.insert(node.argument("weight").value());
  }
  double some = 0, all = 0;
  for (const Weight& weight : program.weights) {
    const auto bytes = static_cast<double>(weight.tensor.nbytes());
    all += bytes;
    if (packable.contains(weight.value)) some += bytes;
  }
  return all > 0 ? some / all : 0;
}

}  // namespace lissome
