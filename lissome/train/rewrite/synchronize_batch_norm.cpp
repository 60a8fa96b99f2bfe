// See synchronize_batch_norm.h.
#include "lissome/train/rewrite/synchronize_batch_norm.h"

#include <memory>
#include <optional>
#include <string_view>

#include "lissome/train/rewrite/batch_norm_forms.h"

namespace lissome {
namespace {

// Empty where the op has no such argument.
std::optional<Argument> find_argument(const Node& node, std::string_view name) {
  if (node.op.argument_index(name) < 0) return std::nullopt;
  return node.argument(name);
}

Argument take_argument(const Node& node, std::string_view name) {
  return find_argument(node, name).value_or(Argument());
}

void synchronize(Node& node, const BatchNormForm& form, const Uses& uses) {
  std::vector<ValueId> results = {node.results.at(0), ValueId::none, ValueId::none};
  if (form.mean > 0) results[1] = node.results.at(form.mean), results[2] = node.results.at(form.variance);
  for (const ValueId id : node.results) {
    const bool kept = id == ValueId::none || std::ranges::find(results, id) != results.end();
    if (!kept && uses.count(id) > 0)
      throw_error(ErrorKind::unsupported, describe_node(node),
                  ": its statistics are read by another node, so it cannot be computed over all ranks");
  }
  const std::optional<Argument> eps = find_argument(node, "eps");
  node.arguments = {node.argument("input"),
                    take_argument(node, "weight"),
                    take_argument(node, "bias"),
                    take_argument(node, "running_mean"),
                    take_argument(node, "running_var"),
                    take_argument(node, "momentum"),
                    eps ? *eps : node.argument("epsilon")};
  node.op = Op::find("lissome::synchronized_batch_norm");
  node.results = std::move(results);
}

}  // namespace

int synchronize_batch_norm(Program& program) {
  register_ops();
  const Uses uses = find_uses(program);
  int changed = 0;
  for (Node& node : program.nodes) {
    if (normalizes_by_batch(node)) {
      synchronize(node, *find_batch_norm_form(node), uses);
      ++changed;
    }
    for (auto& body : node.bodies) {  // the region of a mixed precision holds the whole model
      auto inner = std::make_shared<Program>(*body);
      changed += synchronize_batch_norm(*inner);
      body = std::move(inner);
    }
  }
  return changed;
}

}  // namespace lissome
