#include "lissome/compress/rewrite_int8.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <map>

#include "lissome/compress/int8_nodes.h"
#include "lissome/compress/int8_ops.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

// Ops that give the same on u8 as on the numbers behind it: they move elements, or choose the largest. (Max pooling has
// an op of its own for u8, since ATen counts positions in the element's type and so refuses large images.)
// Concatenation is one of them where all its inputs have one range.
constexpr std::array kTransparent = {"aten::reshape",       "aten::flatten.using_ints", "aten::permute",
                                     "aten::transpose.int", "aten::slice.Tensor",       "aten::squeeze.dim",
                                     "aten::unsqueeze",     "aten::max_pool2d",         "aten::cat"};

bool is_transparent(const Node& node) {
  return std::find(kTransparent.begin(), kTransparent.end(), node.op.name()) != kTransparent.end();
}

// The values that a transparent node reads; empty where one is none.
std::vector<ValueId> list_sources(const Node& node) {
  const Argument& first = node.arguments.front();
  if (first.is_value()) return {first.value()};
  std::vector<ValueId> sources;
  if (!first.is_list()) return {};
  for (const Argument& item : first.list()) {
    if (!item.is_value()) return {};
    sources.push_back(item.value());
  }
  return sources;
}

class Int8Rewriter {
 public:
  Int8Rewriter(const Program& program, const std::vector<Layer>& layers, const Int8Ranges& ranges)
      : source_(program), uses_(find_uses(program)), ranges_(ranges), result_(program) {
    for (const Layer& layer : layers) {
      if (layer.reason.empty()) layers_[static_cast<int>(layer.position)] = &layer;
    }
    result_.nodes.clear();
  }

  Program run() {
    find_wanted();
    for (size_t position = 0; position < source_.nodes.size(); ++position) emit(static_cast<int>(position));
    rename_integers();
    run_passes({find_pass("remove_dead_nodes"), 1}, result_, {});  // floats whose readers take u8
    remove_unread_weights(result_);
    return std::move(result_);
  }

 private:
  const Layer* find_layer(int position) const {
    const auto entry = layers_.find(position);
    return entry == layers_.end() ? nullptr : entry->second;
  }

  // Whether this reader takes u8: a static layer through its input or its residual, or a transparent or int8 node that
  // was converted.
  bool takes_u8(int position, int argument) const {
    if (position >= static_cast<int>(source_.nodes.size())) return false;
    const Layer* layer = find_layer(position);
    if (layer == nullptr) return argument == 0 && converted_.count(position) > 0;
    if (layer->dynamic) return false;
    return argument == 0 || (has_u8_residual(*layer) && is_residual(position, argument));
  }

  const Node& node_at(int position) const { return source_.nodes[static_cast<size_t>(position)]; }

  bool is_residual(int position, int argument) const {
    return node_at(position).op.argument_index("residual") == argument;
  }

  // A residual is read as u8 where u8 of it is made anyhow, for another reader or by the layer that gives it, and does
  // not clip it: a range that the model has for one reader may be narrow.
  bool has_u8_residual(const Layer& layer) const {
    constexpr double kCovered = 0.95;
    const auto wanted = wanted_.find(layer.residual);
    if (layer.residual == ValueId::none || wanted == wanted_.end()) return false;
    return wanted->second.low <= kCovered * layer.residual_range.low &&
           wanted->second.high >= kCovered * layer.residual_range.high && layer.residual_range.has_scale();
  }
  bool is_given_by_layer(ValueId value) const {
    const int producer = uses_.producer[static_cast<size_t>(value)];
    const Layer* layer = producer < 0 ? nullptr : find_layer(producer);
    return layer != nullptr && !layer->dynamic;
  }

  bool all_readers_take_u8(ValueId value) const {
    const auto& readers = uses_.by_value[static_cast<size_t>(value)];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(),
                                           [&](const auto& use) { return takes_u8(use.first, use.second); });
  }

  // From the last node to the first: a transparent node whose readers all want u8 wants it of its own inputs. Two
  // ranges for one value would quantize it twice: the first come stays, and layers behind the node take it.
  void find_wanted() {
    for (const Node& node : source_.nodes) {
      if (!node.is("lissome::dequantize")) continue;
      if (const auto range = read_range(node)) wanted_.emplace(node.result(), *range);
    }
    for (int position = static_cast<int>(source_.nodes.size()) - 1; position >= 0; --position) {
      const Node& node = source_.nodes[static_cast<size_t>(position)];
      const Layer* layer = find_layer(position);
      if (layer != nullptr && !layer->dynamic) {
        wanted_.emplace(layer->input, layer->range);
        if (layer->residual != ValueId::none && layer->residual_range.has_scale() &&
            is_given_by_layer(layer->residual)) {
          wanted_.emplace(layer->residual, layer->residual_range);
        }
      }
      if (layer == nullptr && is_transparent(node)) want_through(node, position);
      if (layer == nullptr && is_int8_node(source_, node)) want_before(node, position);
      if (node.is("lissome::quantize")) want_rounded(node, position);
    }
  }

  // What a model rounds by itself is u8 of that range for all who read it.
  void want_rounded(const Node& node, int position) {
    const auto range = read_range(node);
    const ValueId source = node.arguments.front().value();
    if (!range || source_.value(source).type.dtype != Dtype::f32) return;
    if (same_range(wanted_.emplace(source, *range).first->second, *range)) converted_.emplace(position, true);
  }

  // Layers give what it is made of, so that u8 costs no step of its own.
  bool is_made_by_layers(ValueId value) const {
    if (is_given_by_layer(value)) return true;
    const int producer = uses_.producer[static_cast<size_t>(value)];
    if (producer < 0) return false;
    const Node& node = node_at(producer);
    if (!is_transparent(node) && !is_int8_node(source_, node)) return false;
    const std::vector<ValueId> sources = list_sources(node);
    return !sources.empty() &&
           std::all_of(sources.begin(), sources.end(), [&](ValueId source) { return is_made_by_layers(source); });
  }

  // An int8 node whose readers all take u8 takes u8, if it is the only reader of its input.
  void want_before(const Node& node, int position) {
    const ValueId source = node.arguments.front().value();
    const auto known = ranges_.find(source_.value(source).name);
    if (known == ranges_.end() || wanted_.count(node.result()) == 0 || !all_readers_take_u8(node.result())) return;
    if (uses_.by_value[static_cast<size_t>(source)].size() != 1 || !is_made_by_layers(source)) return;
    wanted_.emplace(source, known->second);
    converted_.emplace(position, true);
  }

  void want_through(const Node& node, int position) {
    const auto range = wanted_.find(node.result());
    const std::vector<ValueId> sources = list_sources(node);
    if (range == wanted_.end() || sources.empty() || !all_readers_take_u8(node.result())) return;
    const auto fits = [&](ValueId source) {
      const auto known = wanted_.find(source);
      return known == wanted_.end() || same_range(known->second, range->second);
    };
    const auto& readers = uses_.by_value[static_cast<size_t>(node.result())];
    const bool adapts = sources.size() == 1 && std::all_of(readers.begin(), readers.end(), [&](const auto& use) {
                          return find_layer(use.first) != nullptr || is_int8_node(source_, node_at(use.first));
                        });
    if (!adapts && !std::all_of(sources.begin(), sources.end(), fits)) return;
    const ActivationRange wanted = range->second;
    for (const ValueId source : sources) wanted_.emplace(source, wanted);
    // Readers of this result take the range of its source.
    wanted_.at(node.result()) = wanted_.at(sources.front());
    converted_.emplace(position, true);
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
    } else if (node.is("lissome::dequantize") && wanted_.contains(node.result())) {
      u8_.emplace(node.result(), rename(node.arguments.front().value()));
      result_.nodes.push_back(node);
    } else if (node.is("lissome::quantize") && converted_.contains(position)) {
      renamed_.emplace(node.result(), read_u8(node.arguments.front().value()));
    } else if (converted_.count(position) > 0) {
      is_transparent(node) ? emit_transparent(node) : emit_int8_node(node);
    } else {
      result_.nodes.push_back(node);
    }
  }

  ValueId rename(ValueId value) const {
    const auto found = renamed_.find(value);
    return found == renamed_.end() ? value : found->second;
  }

  // The integers of the model's own quantization are those that its layers give and read.
  void rename_integers() {
    const auto rename_value = [&](ValueId value) { return rename(value); };
    for (Node& node : result_.nodes) {
      for (Argument& argument : node.arguments) argument = map_values(argument, rename_value);
    }
    for (ProgramOutput& output : result_.outputs) output.value = map_values(output.value, rename_value);
    for (StateWrite& write : result_.writes) write.value = rename(write.value);
  }

  void emit_transparent(const Node& node) {
    ArgumentList arguments = node.arguments;
    arguments.front() = map_values(node.arguments.front(), [&](ValueId value) { return read_u8(value); });
    ValueType type = source_.value(node.result()).type;
    type.dtype = Dtype::u8;
    const Op op = node.is("aten::max_pool2d") ? Op::find("lissome::max_pool2d_u8") : node.op;
    u8_[node.result()] = result_.add_node(op, std::move(arguments), {std::move(type)}, node.origin).result();
  }

  void emit_int8_node(const Node& node) {
    const ValueId source = node.arguments.front().value();
    const ValueId x = read_u8(source);
    u8_[node.result()] = add_int8_node(result_, node, x, wanted_.at(source), wanted_.at(node.result()));
  }

  void emit_recurrent(const Node& node, const Layer& layer) {
    Node copy = node;
    const auto set = [&](const char* argument, const char* suffix, const at::Tensor& tensor) {
      copy.arguments[static_cast<size_t>(node.op.argument_index(argument))] =
          result_.add_weight(layer.name + suffix, tensor, WeightRole::constant);
    };
    set("weight", ".int8", layer.weight);
    set("weight_scales", ".scales", layer.weight_scales);
    result_.nodes.push_back(std::move(copy));
  }

  void emit_layer(const Node& node, const Layer& found) {
    if (found.recurrent) return emit_recurrent(node, found);
    Layer layer = found;
    const ValueId input = layer.dynamic ? layer.input : read_u8(layer.input);
    if (!layer.dynamic) layer.range = wanted_.at(layer.input);
    const ValueType type = source_.value(node.result()).type;
    Epilogue epilogue = read_epilogue(node);
    if (!layer.dynamic && has_u8_residual(layer)) {
      epilogue.residual = read_u8(layer.residual);
      epilogue.residual_range = wanted_.at(layer.residual);
    }
    const auto range = wanted_.find(node.result());
    if (!layer.dynamic && range != wanted_.end() && all_readers_take_u8(node.result())) {
      u8_[node.result()] = add_int8_layer(result_, node, layer, input, epilogue, range->second, type);
      return;
    }
    // The float result takes the place of the old one, so that its readers need no change.
    add_int8_layer(result_, node, layer, input, epilogue, std::nullopt, type);
    result_.nodes.back().results.front() = node.result();
  }

  const Program& source_;
  const Uses uses_;
  const Int8Ranges& ranges_;
  Program result_;
  std::map<int, const Layer*> layers_;         // chosen, by node position
  std::map<ValueId, ActivationRange> wanted_;  // values that somebody reads as u8
  std::map<int, bool> converted_;              // transparent and int8 nodes that work on u8
  std::map<ValueId, ValueId> u8_;              // the u8 twin of a value
  std::map<ValueId, ValueId> renamed_;         // results of lissome::quantize -> the u8 twins of what it reads
};

}  // namespace

Program rewrite_int8(const Program& program, const std::vector<Layer>& layers, const Int8Ranges& ranges) {
  return Int8Rewriter(program, layers, ranges).run();
}

}  // namespace lissome
