#include "lissome/compress/rewrite_int8.h"

#include <algorithm>
#include <array>
#include <map>

#include "lissome/compress/int8_ops.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

// Ops that give the same on u8 as on the numbers behind it: they move elements. Max pooling would too, but ATen counts
// positions in the element's own type and so refuses u8 images of more than 255 elements.
constexpr std::array kTransparent = {"aten::reshape",       "aten::flatten.using_ints", "aten::permute",
                                     "aten::transpose.int", "aten::slice.Tensor",       "aten::squeeze.dim",
                                     "aten::unsqueeze"};

bool is_transparent(const Node& node) {
  return std::find(kTransparent.begin(), kTransparent.end(), node.op.name()) != kTransparent.end();
}

class Int8Rewriter {
 public:
  Int8Rewriter(const Program& program, const std::vector<Layer>& layers)
      : source_(program), uses_(find_uses(program)), result_(program) {
    for (const Layer& layer : layers) {
      if (layer.reason.empty()) layers_[static_cast<int>(layer.position)] = &layer;
    }
    result_.nodes.clear();
  }

  Program run() {
    find_wanted();
    for (size_t position = 0; position < source_.nodes.size(); ++position) emit(static_cast<int>(position));
    remove_unread_weights(result_);
    return std::move(result_);
  }

 private:
  const Layer* find_layer(int position) const {
    const auto entry = layers_.find(position);
    return entry == layers_.end() ? nullptr : entry->second;
  }

  // Whether this reader takes u8: a static layer through its input, or a transparent node that was converted.
  bool takes_u8(int position, int argument) const {
    if (position >= static_cast<int>(source_.nodes.size()) || argument != 0) return false;
    const Layer* layer = find_layer(position);
    if (layer != nullptr) return !layer->dynamic;
    return converted_.count(position) > 0;
  }

  bool all_readers_take_u8(ValueId value) const {
    const auto& readers = uses_.by_value[static_cast<size_t>(value)];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(),
                                           [&](const auto& use) { return takes_u8(use.first, use.second); });
  }

  // From the last node to the first: a transparent node whose readers all want u8 wants it of its own input.
  void find_wanted() {
    for (int position = static_cast<int>(source_.nodes.size()) - 1; position >= 0; --position) {
      const Node& node = source_.nodes[static_cast<size_t>(position)];
      const Layer* layer = find_layer(position);
      if (layer != nullptr && !layer->dynamic) wanted_.emplace(layer->input, layer->range);
      if (layer != nullptr || !is_transparent(node) || !node.arguments.front().is_value()) continue;
      const auto range = wanted_.find(node.result());
      const ValueId input = node.arguments.front().value();
      if (range == wanted_.end() || !all_readers_take_u8(node.result())) continue;
      // Two ranges for one value would quantize it twice: the first come stays.
      if (!wanted_.emplace(input, range->second).second && !(same_range(wanted_.at(input), range->second))) continue;
      converted_.emplace(position, true);
    }
  }

  static bool same_range(const ActivationRange& left, const ActivationRange& right) {
    return left.low == right.low && left.high == right.high;
  }

  ValueId read_u8(ValueId value) {
    const auto known = u8_.find(value);
    if (known != u8_.end()) return known->second;
    const ValueId quantized = add_quantize(result_, value, wanted_.at(value));
    u8_.emplace(value, quantized);
    return quantized;
  }

  void emit(int position) {
    const Node& node = source_.nodes[static_cast<size_t>(position)];
    if (const Layer* layer = find_layer(position)) {
      emit_layer(node, *layer);
    } else if (converted_.count(position) > 0) {
      ArgumentList arguments = node.arguments;
      arguments.front() = read_u8(node.arguments.front().value());
      ValueType type = source_.value(node.result()).type;
      type.dtype = Dtype::u8;
      u8_[node.result()] = result_.add_node(node.op, std::move(arguments), {std::move(type)}, node.origin).result();
    } else {
      result_.nodes.push_back(node);
    }
  }

  void emit_layer(const Node& node, const Layer& layer) {
    const ValueId input = layer.dynamic ? layer.input : read_u8(layer.input);
    const ValueType type = source_.value(node.result()).type;
    const auto range = wanted_.find(node.result());
    if (!layer.dynamic && range != wanted_.end() && all_readers_take_u8(node.result())) {
      u8_[node.result()] = add_int8_layer(result_, node, layer, input, read_epilogue(node), range->second, type);
      return;
    }
    // The float result takes the place of the old one, so that its readers need no change.
    add_int8_layer(result_, node, layer, input, read_epilogue(node), std::nullopt, type);
    result_.nodes.back().results.front() = node.result();
  }

  const Program& source_;
  const Uses uses_;
  Program result_;
  std::map<int, const Layer*> layers_;         // chosen, by node position
  std::map<ValueId, ActivationRange> wanted_;  // values that somebody reads as u8
  std::map<int, bool> converted_;              // transparent nodes that work on u8
  std::map<ValueId, ValueId> u8_;              // the u8 twin of a value
};

}  // namespace

Program rewrite_int8(const Program& program, const std::vector<Layer>& layers) {
  return Int8Rewriter(program, layers).run();
}

}  // namespace lissome
