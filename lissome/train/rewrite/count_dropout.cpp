// See count_dropout.h.
#include "lissome/train/rewrite/count_dropout.h"

#include <algorithm>

namespace lissome {
namespace {

// A mask that keeps and scales: the node that divides, and the fraction of kept values.
struct Mask {
  ValueId drawn = ValueId::none, value = ValueId::none;
  double keep = 0;
  int64_t stream = 0;
};

const Node* find_producer(const Program& program, const Uses& uses, const Argument& argument) {
  if (!argument.is_value()) return nullptr;
  const int position = uses.producer.at(static_cast<size_t>(argument.value()));
  return position < 0 ? nullptr : &program.nodes[static_cast<size_t>(position)];
}

std::optional<Mask> read_mask(const Program& program, const Uses& uses, const Node& node) {
  if (!node.is("aten::div.Scalar") && !node.is("aten::div_.Scalar")) return std::nullopt;
  const Node* draw = find_producer(program, uses, node.argument("self"));
  if (draw == nullptr || !draw->is("aten::bernoulli.p") || uses.count(draw->result()) != 1) return std::nullopt;
  const auto* keep = draw->argument("p").get<double>();
  const auto* divisor = node.argument("other").get<double>();
  if (keep == nullptr || divisor == nullptr || *keep != *divisor || *keep <= 0) return std::nullopt;
  return Mask{draw->result(), node.result(), *keep, 0};
}

// The value that the mask is multiplied with; none if the node does something else with the mask.
ValueId find_other_factor(const Program& program, const Node& node, ValueId mask) {
  if (!node.is("aten::mul.Tensor")) return ValueId::none;
  const Argument &left = node.argument("self"), &right = node.argument("other");
  const Argument& other = left.value() == mask ? right : left;
  if (!other.is_value() || other.value() == mask) return ValueId::none;
  return program.value(other.value()).type == program.value(mask).type ? other.value() : ValueId::none;
}

bool is_read_by_products_alone(const Program& program, const Uses& uses, ValueId mask) {
  const auto& readers = uses.by_value.at(static_cast<size_t>(mask));
  return std::all_of(readers.begin(), readers.end(), [&](const auto& use) {
    const auto position = static_cast<size_t>(use.first);
    return position < program.nodes.size() &&
           find_other_factor(program, program.nodes[position], mask) != ValueId::none;
  });
}

std::vector<Mask> find_masks(const Program& program, const Uses& uses) {
  std::vector<Mask> masks;
  for (const Node& node : program.nodes) {
    std::optional<Mask> mask = read_mask(program, uses, node);
    if (!mask || !is_read_by_products_alone(program, uses, mask->value)) continue;
    mask->stream = std::ssize(masks);
    masks.push_back(*mask);
  }
  return masks;
}

}  // namespace

int count_dropout(Program& program) {
  register_ops();
  const Uses uses = find_uses(program);
  const std::vector<Mask> masks = find_masks(program, uses);
  if (masks.empty()) return 0;
  const ValueId seed = program.add_input(std::string(kDropoutSeed),
                                         {.kind = ValueKind::tensor, .dtype = Dtype::i64, .sized = true, .sizes = {}});
  for (const Mask& mask : masks) {
    for (const auto& [position, argument] : uses.by_value.at(static_cast<size_t>(mask.value))) {
      Node& product = program.nodes[static_cast<size_t>(position)];
      const ValueId x = find_other_factor(program, product, mask.value);
      product.op = Op::find("lissome::dropout");
      product.arguments = {Argument(x), Argument(mask.keep), Argument(seed), Argument(mask.stream)};
    }
  }
  // Removes random nodes, which would otherwise stay although nothing reads them.
  std::erase_if(program.nodes, [&](const Node& node) {
    return std::any_of(masks.begin(), masks.end(), [&](const Mask& mask) {
      return node.results.size() == 1 && (node.result() == mask.drawn || node.result() == mask.value);
    });
  });
  return static_cast<int>(masks.size());
}

bool reads_dropout_seed(const Program& program) {
  return !program.inputs.empty() && program.inputs.back().name == kDropoutSeed;
}

}  // namespace lissome
