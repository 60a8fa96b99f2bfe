// Weights of 4 or 8 bits: linears whose weight is unpacked in registers while they run. For models that reading weights
// bounds, language models that give one token at a time above all.
#include <ATen/core/ivalue.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <map>
#include <set>

#include "lissome/compress.h"
#include "lissome/compress/divide_channels.h"
#include "lissome/compress/group_rounding.h"
#include "lissome/compress/input_products.h"
#include "lissome/compress/int8_ops.h"
#include "lissome/compress/layer.h"
#include "lissome/compress/smooth_channels.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

constexpr int64_t kMostBytesOfProducts = int64_t{1} << 30;  // more layers are measured by further runs over the data

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

std::vector<Layer> find_readers(const Program& program, const QuantizeOptions& options, int bits) {
  std::vector<Layer> layers;
  for (size_t position = 0; position < program.nodes.size(); ++position) {
    const Node& node = program.nodes[position];
    if (!reads_weight(node)) continue;
    Layer layer;
    layer.position = position;
    layer.name = program.value(node.results.front()).name;
    layer.group_bits = bits;
    layer.dynamic = true;
    if (is_linear(node)) {
      layer.input = find_input(node);
      layer.bias = find_constant(program, node.argument("bias"));
    }
    layer.reason = !is_linear(node) && !is_embedding(node) ? "only linears and embeddings unpack their weight"
                   : is_kept(node, options)                ? "kept in float by request"
                                            : refuse_weight(find_constant(program, node.argument("weight")));
    layers.push_back(std::move(layer));
  }
  return layers;
}

ValueId find_weight(const Program& program, const Layer& layer) {
  return program.nodes[layer.position].argument("weight").value();
}

// Linears whose weight no other node reads: columns of a shared one cannot be multiplied.
std::vector<Layer> take_sole_readers(const Program& program, std::vector<Layer> layers) {
  const Uses uses = find_uses(program);
  std::erase_if(layers, [&](const Layer& layer) {
    return !layer.reason.empty() || layer.input == ValueId::none ||
           uses.by_value[static_cast<size_t>(find_weight(program, layer))].size() != 1;
  });
  return layers;
}

// tr(W P Wᵀ): the sum of the squares of what the layer gives on the rows of the products.
double sum_squares(const at::Tensor& weight, const at::Tensor& products) {
  return at::matmul(weight, products).mul(weight).to(at::kDouble).sum().item().toDouble();
}

class WeightPacker {
 public:
  WeightPacker(const Program& program, int bits, Rounding rounding)
      : source_(program), result_(program), uses_(find_uses(program)), bits_(bits), rounding_(rounding) {}

  // `products`: of the layer's input, or none where there are no data or it is an embedding.
  void pack(Layer& layer, const InputProducts* products) {
    const Node before = source_.nodes[layer.position];
    const Made& made = pack_weight(before.argument("weight").value(), products);
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

  // Once, however many nodes read the weight.
  const Made& pack_weight(ValueId id, const InputProducts* products) {
    auto [made, is_new] = made_.try_emplace(id);
    if (!is_new) return made->second;
    const Weight& weight = *source_.find_weight(id);
    const std::string name = weight.name + ".group" + std::to_string(bits_);
    const at::Tensor all = products == nullptr ? at::Tensor() : products->all();
    const GroupWeight rounded = round(id, weight.tensor, products, all);
    const at::Tensor lost = restore(rounded).sub(weight.tensor);
    const auto measure = [&](const at::Tensor& tensor) {
      return all.defined() ? sum_squares(tensor, all) : tensor.to(at::kDouble).pow(2).sum().item().toDouble();
    };
    made->second = {result_.add_weight(name, pack_numbers(rounded.numbers, bits_), WeightRole::constant),
                    result_.add_weight(name + ".scales", pack_scales(rounded.scales), WeightRole::constant),
                    find_signal_to_noise(measure(weight.tensor), measure(lost))};
    return made->second;
  }

  // `all`: the products of all rows.
  GroupWeight round(ValueId id, const at::Tensor& weight, const InputProducts* products, const at::Tensor& all) const {
    if (products == nullptr) return round_to_nearest(weight, {}, bits_);
    const auto& readers = uses_.by_value[static_cast<size_t>(id)];
    // An embedding reads single rows, which no inputs move together.
    const bool is_table = std::ranges::any_of(
        readers, [&](const auto& use) { return is_embedding(source_.nodes[static_cast<size_t>(use.first)]); });
    if (rounding_ == Rounding::gptq && !is_table && is_better_in_order(weight, *products))
      return round_in_order(weight, all, bits_);
    return round_to_nearest(weight, all.diagonal(), bits_);
  }

  // On rows that neither was fitted to: few rows of many inputs fit by chance.
  bool is_better_in_order(const at::Tensor& weight, const InputProducts& products) const {
    const auto find_loss = [&](const GroupWeight& rounded) {
      return sum_squares(restore(rounded).sub(weight), products.judged);
    };
    return find_loss(round_in_order(weight, products.fitted, bits_)) <
           find_loss(round_to_nearest(weight, products.fitted.diagonal(), bits_));
  }

  const Program& source_;
  Program result_;
  const Uses uses_;
  const int bits_;
  const Rounding rounding_;
  std::map<ValueId, Made> made_;
};

// Linears that are packed by what their inputs are, in parts whose products are in memory together.
std::vector<std::vector<Layer*>> divide_linears(const Program& program, std::vector<Layer>& layers) {
  std::vector<std::vector<Layer*>> parts;
  std::set<ValueId> inputs;
  int64_t bytes = kMostBytesOfProducts;
  for (Layer& layer : layers) {
    if (!layer.reason.empty() || layer.input == ValueId::none) continue;
    const int64_t width = program.find_weight(find_weight(program, layer))->tensor.size(1);
    const int64_t added = inputs.contains(layer.input) ? 0 : 2 * width * width * int64_t{sizeof(float)};
    if (parts.empty() || bytes + added > kMostBytesOfProducts) parts.emplace_back(), inputs.clear(), bytes = 0;
    bytes += inputs.insert(layer.input).second ? 2 * width * width * int64_t{sizeof(float)} : 0;
    parts.back().push_back(&layer);
  }
  return parts;
}

QuantizedLayer describe_layer(const Program& program, const Layer& layer) {
  const Node& node = program.nodes[layer.position];
  QuantizedLayer row;
  row.name = layer.name, row.origin = node.origin, row.op = node.op.name();
  row.signal_to_noise = layer.signal_to_noise, row.quantized = layer.reason.empty(), row.reason = layer.reason;
  row.smoothing = layer.smoothing;
  return row;
}

}  // namespace

Quantized quantize_weights(const Program& program, int bits, const CalibrationBatches& batches,
                           const QuantizeOptions& options, const WorkControl& control) {
  if (bits != 4 && bits != 8) throw_error(ErrorKind::usage, "weights can have 4 or 8 bits, not ", bits);
  check_patterns(program, options, reads_weight);
  const bool has_data = bits == 4 && !batches.empty();  // 8 bits lose too little for data to matter
  SmoothedChannels smoothed;
  if (has_data) {
    smoothed = smooth_channels(program, take_sole_readers(program, find_readers(program, options, bits)), batches,
                               options, control);
  }
  const Program divided = divide_channels(program, smoothed.divisions);
  std::vector<Layer> layers = find_readers(divided, options, bits);
  WeightPacker packer(divided, bits, options.rounding);
  // Linears first: an embedding that shares their weight takes it as the data weigh it for them.
  for (const std::vector<Layer*>& part : divide_linears(divided, layers)) {
    std::map<ValueId, InputProducts> products;
    if (has_data) products = measure_products(divided, part, batches, control);
    if (control.stopped()) products.clear();  // some of them are sums over no batch
    for (Layer* layer : part) {
      const auto found = products.find(layer->input);
      packer.pack(*layer, found == products.end() ? nullptr : &found->second);
    }
  }
  Quantized result;
  for (Layer& layer : layers) {
    if (layer.reason.empty() && layer.input == ValueId::none) packer.pack(layer, nullptr);
    layer.smoothing = smoothed.layers[layer.name];
    result.layers.push_back(describe_layer(divided, layer));
  }
  result.program = packer.take();
  return result;
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
