// Where numbers are bf16: products and convolutions, and the ops between them that only move, add or normalize (their
// ATen kernels accumulate in f32). Everything else reads f32 again. Weights are converted once, here. What would cast
// more than it saves stays f32: joining something small to f32 caches, and attention of few queries to f32 keys. LSTM
// and GRU are split into layers first: their weights become bf16, their gates and states stay f32.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <ranges>
#include <set>

#include "lissome/compress.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

constexpr std::array kProducts = {
    "aten::linear", "lissome::linear_act", "aten::convolution", "lissome::conv_act",
    "aten::matmul", "aten::bmm",           "aten::mm",          "aten::scaled_dot_product_attention"};

constexpr std::array kFollowers = {"aten::relu",        "aten::gelu",          "aten::silu",
                                   "aten::hardswish",   "aten::add.Tensor",    "aten::mul.Tensor",
                                   "aten::max_pool2d",  "aten::avg_pool2d",    "aten::adaptive_avg_pool2d",
                                   "aten::layer_norm",  "aten::reshape",       "aten::flatten.using_ints",
                                   "aten::permute",     "aten::transpose.int", "aten::slice.Tensor",
                                   "aten::squeeze.dim", "aten::unsqueeze",     "aten::expand",
                                   "aten::select.int",  "aten::cat",           "aten::mul.Scalar",
                                   "aten::sigmoid",     "aten::tanh"};

// Cut something into a list, whose elements lissome::getitem takes.
constexpr std::array kCuts = {"aten::chunk", "aten::split.Tensor", "aten::split_with_sizes", "aten::unbind.int"};

constexpr int64_t kFewQueries = 4;
constexpr double kLowestBf16 = -3.3895313892515355e38;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::string_view kDynamicLinear = "lissome::linear_dynamic_int8";
constexpr std::array kRecurrentLayers = {"lissome::lstm_layer", "lissome::gru_layer"};

bool is_one_of(const Node& node, const auto& names) {
  return std::find(names.begin(), names.end(), node.op.name()) != names.end();
}

class Bf16Converter {
 public:
  Bf16Converter(const Program& program, const Bf16Options& options)
      : source_(program), options_(options), result_(program) {
    result_.nodes.clear();
    find_masks();
  }

  Program run() {
    for (const Node& node : source_.nodes) emit(node);
    const auto as_f32 = [&](ValueId value) { return read(value, Dtype::f32); };
    for (ProgramOutput& output : result_.outputs) output.value = map_values(output.value, as_f32);
    for (StateWrite& write : result_.writes) write.value = as_f32(write.value);
    remove_unread_weights(result_);
    return std::move(result_);
  }

 private:
  bool is_f32(ValueId value) const {
    const ValueType& type = source_.value(value).type;
    return type.kind == ValueKind::tensor && type.sized && type.dtype == Dtype::f32;
  }

  bool is_kept(const Node& node) const {
    return node.origin != nullptr &&
           std::any_of(options_.keep_float.begin(), options_.keep_float.end(),
                       [&](const std::string& pattern) { return matches_pattern(pattern, node.origin->module); });
  }

  // Masks of attention stay f32, and what followers make them of: the lowest number of f32, added to a bias in bf16,
  // would be -inf.
  void find_masks() {
    for (const Node& node : source_.nodes | std::views::reverse) {
      const bool attends = node.is("aten::scaled_dot_product_attention");
      const bool leads = is_one_of(node, kFollowers) && node.results.size() == 1 && in_masks_.count(node.result()) > 0;
      const auto keep = [&](ValueId value) { in_masks_.insert(value); };
      if (attends) for_each_value(node.argument("attn_mask"), keep);
      if (leads)
        for (const Argument& argument : node.arguments) for_each_value(argument, keep);
    }
  }

  // A product of floats, or a follower that reads something that is bf16 already.
  bool goes_bf16(const Node& node) const {
    if (node.results.size() != 1) return false;
    // What is cut from a list has its dtype.
    if (node.is("lissome::getitem")) return only_bf16_.count(node.arguments.front().value()) > 0;
    if (is_kept(node)) return false;
    if (is_one_of(node, kCuts)) return only_bf16_.count(node.arguments.front().value()) > 0 && is_only_taken_from(node);
    if (!is_f32(node.result())) return false;
    if (node.is("aten::scaled_dot_product_attention") && reads_wide_keys(node)) return false;
    if (has_window_of_three(node)) return false;
    if (is_one_of(node, kProducts) || node.is(kDynamicLinear)) return true;
    if (!is_one_of(node, kFollowers) || in_masks_.count(node.result()) > 0) return false;
    bool follows = false, widens = false;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId value) {
        follows = follows || only_bf16_.count(value) > 0;
        widens = widens || is_computed_f32(value);
      });
    }
    return follows && !(widens && node.is("aten::cat"));
  }

  // libtorch leaves bytes of the result unset for some of these in bf16 (with a stride and a dilation of several).
  bool has_window_of_three(const Node& node) const {
    if (!node.is("aten::convolution") && !node.is("lissome::conv_act")) return false;
    const Argument& stride = node.argument("stride");
    return stride.is_list() && stride.list().size() == 3;
  }

  // f32 in the result too, and no weight.
  bool is_computed_f32(ValueId value) const {
    return is_f32(value) && only_bf16_.count(value) == 0 && source_.find_weight(value) == nullptr;
  }

  bool is_only_taken_from(const Node& cut) const {
    bool leaves = false;
    for (const ProgramOutput& output : source_.outputs) {
      for_each_value(output.value, [&](ValueId value) { leaves = leaves || value == cut.result(); });
    }
    return !leaves && std::all_of(source_.nodes.begin(), source_.nodes.end(), [&](const Node& node) {
      bool reads = false;
      for (const Argument& argument : node.arguments) {
        for_each_value(argument, [&](ValueId value) { reads = reads || value == cut.result(); });
      }
      return !reads || node.is("lissome::getitem");
    });
  }

  bool reads_wide_keys(const Node& attention) const {
    const Argument& query = attention.argument("query");
    const Argument &key = attention.argument("key"), &value = attention.argument("value");
    if (!query.is_value() || !key.is_value() || !value.is_value()) return false;
    const std::vector<Dimension>& sizes = source_.value(query.value()).type.sizes;
    const auto queries = sizes.size() < 2 ? std::nullopt : sizes[sizes.size() - 2].constant();
    return queries && *queries <= kFewQueries && is_computed_f32(key.value()) && is_computed_f32(value.value());
  }

  // The twin of a value in the dtype asked for, converted when there is none yet.
  ValueId read(ValueId value, Dtype dtype) {
    if (!is_f32(value)) return value;
    const bool native = (dtype == Dtype::bf16) == (only_bf16_.count(value) > 0);
    if (native) return value;
    std::map<ValueId, ValueId>& twins = dtype == Dtype::bf16 ? bf16_ : f32_;
    if (const auto known = twins.find(value); known != twins.end()) return known->second;
    const Weight* weight = source_.find_weight(value);
    ValueId twin;
    if (weight != nullptr && dtype == Dtype::bf16 && !is_written(value)) {
      twin = result_.add_weight(weight->name + ".bf16", weight->tensor.to(at::kBFloat16).contiguous(),
                                WeightRole::constant);
    } else {
      ValueType type = source_.value(value).type;
      type.dtype = dtype;
      twin = result_.add_node(Op::find("aten::to.dtype"), {value, dtype}, {std::move(type)}).result();
    }
    twins.emplace(value, twin);
    return twin;
  }

  bool is_written(ValueId value) const {
    return std::any_of(source_.writes.begin(), source_.writes.end(),
                       [&](const StateWrite& write) { return write.target == value; });
  }

  // Scales and biases of a linear that finds its scales while running stay f32; of a recurrent layer all but its
  // weight.
  Dtype choose_dtype(const Node& node, size_t argument, Dtype dtype) const {
    const auto index = static_cast<int>(argument);
    if (is_one_of(node, kRecurrentLayers))
      return index == node.op.argument_index("weight") && !is_kept(node) ? Dtype::bf16 : Dtype::f32;
    if (!node.is(kDynamicLinear)) return dtype;
    return index == node.op.argument_index("x") || index == node.op.argument_index("residual") ? dtype : Dtype::f32;
  }

  // A mask that goes to attention in bf16: finite numbers below all of bf16 would round to -inf, which takes keys away
  // even where a mask lowers all of a row alike.
  ValueId read_mask(ValueId mask) {
    if (!is_f32(mask) || only_bf16_.count(mask) > 0) return read(mask, Dtype::bf16);
    if (const auto known = masks_.find(mask); known != masks_.end()) return known->second;
    if (const Weight* weight = source_.find_weight(mask); weight != nullptr && !is_written(mask)) {
      const at::Tensor low =
          weight->tensor.clamp_min(kLowestBf16).masked_fill(weight->tensor.eq(-kInfinity), -kInfinity);
      return masks_
          .emplace(mask, result_.add_weight(weight->name + ".mask.bf16", low.to(at::kBFloat16).contiguous(),
                                            WeightRole::constant))
          .first->second;
    }
    const ValueType type = source_.value(mask).type;
    ValueType seen = type, narrow = type;
    seen.dtype = Dtype::boolean;
    narrow.dtype = Dtype::bf16;
    const ValueId low = result_.add_node(Op::find("aten::clamp_min"), {mask, kLowestBf16}, {type}).result();
    const ValueId gone = result_.add_node(Op::find("aten::eq.Scalar"), {mask, -kInfinity}, {std::move(seen)}).result();
    const ValueId kept =
        result_.add_node(Op::find("aten::masked_fill.Scalar"), {low, gone, -kInfinity}, {type}).result();
    const ValueId twin =
        result_.add_node(Op::find("aten::to.dtype"), {kept, Dtype::bf16}, {std::move(narrow)}).result();
    masks_.emplace(mask, twin);
    return twin;
  }

  void emit(const Node& node) {
    const Dtype dtype = goes_bf16(node) ? Dtype::bf16 : Dtype::f32;
    Node copy = node;
    for (size_t i = 0; i < copy.arguments.size(); ++i) {
      const Dtype wanted = choose_dtype(node, i, dtype);
      const bool masks = wanted == Dtype::bf16 && node.is("aten::scaled_dot_product_attention") &&
                         static_cast<int>(i) == node.op.argument_index("attn_mask");
      copy.arguments[i] =
          map_values(copy.arguments[i], [&](ValueId value) { return masks ? read_mask(value) : read(value, wanted); });
    }
    result_.nodes.push_back(std::move(copy));
    if (dtype != Dtype::bf16) return;
    only_bf16_.insert(node.result());
    if (is_f32(node.result())) result_.value(node.result()).type.dtype = Dtype::bf16;
  }

  const Program& source_;
  const Bf16Options& options_;
  Program result_;
  std::set<ValueId> only_bf16_;            // values of the source that are bf16 in the result
  std::map<ValueId, ValueId> bf16_, f32_;  // converted twins
  std::map<ValueId, ValueId> masks_;       // those of attention in bf16
  std::set<ValueId> in_masks_;             // values of the source
};

}  // namespace

Program convert_bf16(const Program& program, const Bf16Options& options) {
  Program split = program;
  split_recurrent(split);
  return Bf16Converter(split, options).run();
}

bool computes_in_bf16(const Program& program) {
  return std::ranges::any_of(program.nodes, [&](const Node& node) {
    return std::ranges::any_of(node.results, [&](ValueId id) {
      return id != ValueId::none && program.value(id).type.kind == ValueKind::tensor &&
             program.value(id).type.dtype == Dtype::bf16;
    });
  });
}

}  // namespace lissome
