// What depends on weights and literals alone is computed once: tensors become weights, numbers become literals. So do
// sizes that the types know.
#include <ATen/core/ivalue.h>

#include <map>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// A result may outgrow what it is made of (expand, arange); beyond this it is cheaper to compute than to store.
constexpr int64_t kLargestGrowth = 1 << 20;  // bytes

class ConstantFolder {
 public:
  explicit ConstantFolder(Program& program) : rewriter_(program) {}

  int run() {
    for (int position = 0; position < rewriter_.node_count(); ++position) {
      if (fold_size(position)) continue;
      const Node node = rewriter_.node(position);  // a copy: adding weights may move values
      if (is_foldable(node)) fold(node);
    }
    return rewriter_.finish();
  }

 private:
  bool is_known(ValueId value) const { return computed_.contains(value) || rewriter_.is_constant(value); }

  bool is_foldable(const Node& node) {
    if (!node.op.has_schema() || node.results.empty() || !is_pure(rewriter_.program(), node)) return false;
    // Memory that nobody has written yet has no value to keep.
    if (node.op.name().starts_with("aten::empty") || node.op.name().starts_with("aten::new_empty")) return false;
    bool known = true;
    for (const Argument& argument : node.arguments) {
      for_each_value(rewriter_.resolve(argument), [&](ValueId value) { known = known && is_known(value); });
    }
    return known;
  }

  c10::IValue look_up(ValueId value) const {
    const auto found = computed_.find(value);
    return found != computed_.end() ? found->second : c10::IValue(rewriter_.program().find_weight(value)->tensor);
  }

  std::vector<c10::IValue> evaluate(const Node& node) {
    std::vector<c10::IValue> arguments;
    for (const Argument& argument : node.arguments) {
      arguments.push_back(resolve_argument(rewriter_.resolve(argument), [&](ValueId value) { return look_up(value); }));
    }
    return interpret_node(node, arguments);
  }

  int64_t count_input_bytes(const Node& node) {
    int64_t bytes = 0;
    for (const Argument& argument : node.arguments) {
      for_each_value(rewriter_.resolve(argument), [&](ValueId value) {
        if (const c10::IValue known = look_up(value); known.isTensor()) bytes += count_bytes({known});
      });
    }
    return bytes;
  }

  static int64_t count_bytes(const std::vector<c10::IValue>& results) {
    int64_t bytes = 0;
    for (const c10::IValue& result : results) {
      if (!result.isTensor() || result.toTensor().layout() != at::kStrided) continue;  // keep() leaves others alone
      // What is repeated in memory counts once.
      const at::Tensor& tensor = result.toTensor();
      const auto held = tensor.has_storage() ? static_cast<int64_t>(tensor.storage().nbytes()) : INT64_MAX;
      bytes += std::min(held, static_cast<int64_t>(tensor.nbytes()));
    }
    return bytes;
  }

  // A view that repeats its elements: to store it would cost memory and hide from others that they are the same.
  static bool is_repeating(const Node& node) {
    return node.is("aten::expand") || node.is("aten::expand_as") || node.is("aten::broadcast_to");
  }

  void fold(const Node& node) {
    const std::vector<c10::IValue> results = evaluate(node);
    if (is_repeating(node)) {
      computed_.emplace(node.result(), results.front());
      return;
    }
    if (count_bytes(results) > count_input_bytes(node) + kLargestGrowth) return;
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.results[i] != ValueId::none) keep(node.results[i], results[i]);
    }
  }

  // A part of another weight would keep all of it in memory.
  static at::Tensor own_memory(const at::Tensor& tensor) {
    const at::Tensor dense = tensor.contiguous();
    return dense.storage().nbytes() > dense.nbytes() ? dense.clone() : dense;
  }

  void keep(ValueId value, const c10::IValue& result) {
    Program& program = rewriter_.program();
    if (result.isTensor() && result.toTensor().defined() && result.toTensor().layout() == at::kStrided) {
      const std::string name = "folded." + program.value(value).name;
      rewriter_.replace_value(value, add_constant(program, name, own_memory(result.toTensor())));
    } else if (result.isInt()) {
      rewriter_.replace_value(value, result.toInt());
    } else if (result.isDouble()) {
      rewriter_.replace_value(value, result.toDouble());
    } else if (result.isBool()) {
      rewriter_.replace_value(value, result.toBool());
    } else if (result.isList()) {
      computed_.emplace(value, result);  // a list has no literal of its own; what is taken out of it has
    }
  }

  // sym_size of a tensor whose size there is a number.
  bool fold_size(int position) {
    const Node& node = rewriter_.node(position);
    if (!node.is("aten::sym_size.int") && !node.is("aten::size.int")) return false;
    const ValueType& type = rewriter_.type_of(rewriter_.resolve(node.argument("self")));
    const auto* dim = node.argument("dim").get<int64_t>();
    if (type.kind != ValueKind::tensor || !type.sized || dim == nullptr) return false;
    const auto rank = static_cast<int64_t>(type.sizes.size());
    const int64_t place = *dim < 0 ? *dim + rank : *dim;
    if (place < 0 || place >= rank) return false;
    const auto size = type.sizes[static_cast<size_t>(place)].constant();
    if (!size) return false;
    rewriter_.replace_value(node.result(), *size);
    return true;
  }

  Rewriter rewriter_;
  std::map<ValueId, c10::IValue> computed_;  // known, but not in place of the node
};

}  // namespace

int fold_constants(Program& program) { return ConstantFolder(program).run(); }

}  // namespace lissome
