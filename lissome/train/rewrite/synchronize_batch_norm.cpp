// See synchronize_batch_norm.h.
#include "lissome/train/rewrite/synchronize_batch_norm.h"

#include <memory>
#include <optional>
#include <string_view>

namespace lissome {
namespace {

// The results of an op that are the new running mean and variance; 0: it has none.
struct BatchNormForm {
  std::string_view op;
  size_t mean = 0, variance = 0;
};
constexpr BatchNormForm kForms[] = {{"aten::_native_batch_norm_legit_functional", 3, 4},
                                    {"aten::_batch_norm_with_update_functional", 4, 5},
                                    {"aten::_native_batch_norm_legit.no_stats"},
                                    {"aten::native_batch_norm"},
                                    {"aten::batch_norm"},
                                    {"aten::cudnn_batch_norm"}};

const BatchNormForm* find_form(const Node& node) {
  for (const BatchNormForm& form : kForms) {
    if (node.is(form.op)) return &form;
  }
  return nullptr;
}

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
    const BatchNormForm* form = find_form(node);
    if (form != nullptr && find_argument(node, "training") != Argument(false)) {
      synchronize(node, *form, uses);
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
