#include <functional>
#include <map>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// A result may outgrow what it is made of (expand, arange); beyond this it is cheaper to compute than to store.
constexpr int64_t kLargestGrowth = 1 << 20;  // bytes

// Reads constants alone, at least one of them or none at all; makes tensors alone.
bool is_foldable(Rewriter& rewriter, const Node& node) {
  const Program& program = rewriter.program();
  if (!node.op.has_schema() || node.results.empty() || !is_pure(program, node)) return false;
  bool constant = true;
  for (const Argument& argument : node.arguments) {
    for_each_value(rewriter.resolve(argument), [&](ValueId value) { constant = constant && is_constant(program, value); });
  }
  for (ValueId result : node.results) constant = constant && program.value(result).type.kind == ValueKind::tensor;
  return constant;
}

int64_t count_input_bytes(Rewriter& rewriter, const Node& node) {
  int64_t bytes = 0;
  for (const Argument& argument : node.arguments) {
    for_each_value(rewriter.resolve(argument), [&](ValueId value) {
      bytes += static_cast<int64_t>(rewriter.program().find_weight(value)->tensor.nbytes());
    });
  }
  return bytes;
}

// Lists may mix weights and literals, so the node is evaluated as a program of its own.
std::vector<c10::IValue> evaluate(Rewriter& rewriter, const Node& node) {
  Program single;
  std::map<ValueId, ValueId> names;
  const std::function<Argument(const Argument&)> copy = [&](const Argument& argument) -> Argument {
    if (argument.is_value()) {
      const auto [entry, fresh] = names.try_emplace(argument.value(), ValueId::none);
      if (fresh) {
        const at::Tensor tensor = constant_tensor(rewriter.program(), argument);
        entry->second = single.add_weight(rewriter.program().value(argument.value()).name, tensor, WeightRole::constant);
      }
      return entry->second;
    }
    if (!argument.is_list()) return argument;
    ArgumentList items;
    for (const Argument& item : argument.list()) items.push_back(copy(item));
    return items;
  };
  ArgumentList arguments;
  for (const Argument& argument : node.arguments) arguments.push_back(copy(rewriter.resolve(argument)));
  std::vector<ValueType> types;
  for (ValueId result : node.results) types.push_back(rewriter.program().value(result).type);
  const Node& added = single.add_node(node.op, std::move(arguments), std::move(types), node.origin);
  for (ValueId result : added.results) single.outputs.push_back({result, {}});
  return interpret(single, {});
}

}  // namespace

int fold_constants(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node node = rewriter.node(position);  // a copy: adding weights may move values
    if (!is_foldable(rewriter, node)) continue;
    const std::vector<c10::IValue> results = evaluate(rewriter, node);
    int64_t bytes = 0;
    for (const c10::IValue& result : results) {
      if (result.isTensor()) bytes += result.toTensor().numel() * static_cast<int64_t>(result.toTensor().element_size());
    }
    if (bytes > count_input_bytes(rewriter, node) + kLargestGrowth) continue;
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string name = "folded." + program.value(node.results[i]).name;
      const at::Tensor tensor = results[i].toTensor().contiguous();
      rewriter.replace_value(node.results[i], program.add_weight(name, tensor, WeightRole::constant));
    }
  }
  return rewriter.finish();
}

}  // namespace lissome
