#include "lissome/compress/divide_channels.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lissome/compress/layer.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

bool is_constant_or_none(const Program& program, const Argument& argument) {
  return argument.is_none() || find_constant(program, argument).defined();
}

bool is_f32_constant(const Program& program, const Argument& argument) {
  const at::Tensor tensor = find_constant(program, argument);
  return tensor.defined() && tensor.scalar_type() == at::kFloat;
}

// Over the last dimension alone, so that its weight is one number a channel.
bool divides_as_norm(const Program& program, const Node& node) {
  if (!node.is("aten::layer_norm") && !node.is("aten::rms_norm")) return false;
  const Argument& shape = node.argument("normalized_shape");
  const bool one = shape.is_list() && shape.list().size() == 1;
  const bool shifts = node.op.argument_index("bias") >= 0;
  return one && is_constant_or_none(program, node.argument("weight")) &&
         (!shifts || is_constant_or_none(program, node.argument("bias")));
}

// Rows of a linear scale its results where nothing but ReLU comes after: relu(x / s) = relu(x) / s.
bool divides_as_linear(const Program& program, const Uses& uses, const Node& node) {
  if (!is_linear(node) || !is_f32_constant(program, node.argument("weight"))) return false;
  // A weight that others read would be kept twice.
  if (uses.count(node.argument("weight").value()) > 1) return false;
  if (!is_constant_or_none(program, node.argument("bias"))) return false;
  if (node.is("aten::linear")) return true;
  const std::string& activation = *node.argument("act").get<std::string>();
  return node.argument("residual").is_none() && (activation == "none" || activation == "relu");
}

class ChannelDivider {
 public:
  explicit ChannelDivider(const Program& program) : source_(program), uses_(find_uses(program)), result_(program) {}

  Program run(const std::vector<ChannelDivision>& divisions) {
    for (const ChannelDivision& division : divisions) {
      const DividerPlace place = find_divider_place(source_, uses_, division.value, division.linears);
      for (const size_t position : division.linears) {
        scale(result_.nodes[position], "weight", division.factors);
      }
      const at::Tensor inverse = division.factors.reciprocal();
      if (place == DividerPlace::product) {
        multiply_value(division, inverse);
        continue;
      }
      Node& maker = result_.nodes[static_cast<size_t>(uses_.producer[static_cast<size_t>(division.value)])];
      scale(maker, "weight", place == DividerPlace::norm ? inverse : inverse.unsqueeze(1));
      if (maker.op.argument_index("bias") >= 0 && !maker.argument("bias").is_none()) scale(maker, "bias", inverse);
    }
    insert_products();
    remove_unread_weights(result_);
    return std::move(result_);
  }

 private:
  // The argument times the factors, rounded to f32. A norm without a weight has had ones.
  void scale(Node& node, const char* argument, const at::Tensor& factors) {
    const ValueId old = node.argument(argument).value();
    const at::Tensor known = find_constant(result_, node.argument(argument));
    const at::Tensor product = known.defined() ? known.to(at::kDouble).mul(factors) : factors;
    if (made_.contains(old)) {
      // A linear that divides what it makes and multiplies what it reads.
      std::find_if(result_.weights.begin(), result_.weights.end(), [&](const Weight& weight) {
        return weight.value == old;
      })->tensor = product.to(at::kFloat).contiguous();
    } else {
      node.argument(argument) = add_constant(result_.value(node.result()).name + "." + argument, product);
    }
  }

  ValueId add_constant(const std::string& name, const at::Tensor& tensor) {
    const ValueId made =
        result_.add_weight(name + ".smoothed", tensor.to(at::kFloat).contiguous(), WeightRole::constant);
    made_.insert(made);
    return made;
  }

  void multiply_value(const ChannelDivision& division, const at::Tensor& inverse) {
    const Value value = result_.value(division.value);
    const ValueId constant = add_constant(value.name, inverse);
    const size_t first = *std::min_element(division.linears.begin(), division.linears.end());
    result_.add_node(Op::find("aten::mul.Tensor"), {division.value, constant}, {value.type},
                     result_.nodes[first].origin);
    products_.emplace_back(first, std::move(result_.nodes.back()));
    result_.nodes.pop_back();
    for (const size_t position : division.linears) {
      result_.nodes[position].arguments.front() = products_.back().second.result();
    }
  }

  // Positions stay what they are until all else is done.
  void insert_products() {
    std::sort(products_.begin(), products_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [position, node] : products_) {
      result_.nodes.insert(result_.nodes.begin() + static_cast<std::ptrdiff_t>(position), std::move(node));
    }
  }

  const Program& source_;
  const Uses uses_;
  Program result_;
  std::set<ValueId> made_;                         // constants
  std::vector<std::pair<size_t, Node>> products_;  // each before this position
};

}  // namespace

DividerPlace find_divider_place(const Program& program, const Uses& uses, ValueId value,
                                const std::vector<size_t>& linears) {
  const int producer = uses.producer[static_cast<size_t>(value)];
  const auto& readers = uses.by_value[static_cast<size_t>(value)];
  const bool alone = std::all_of(readers.begin(), readers.end(), [&](const auto& use) {
    return use.second == 0 &&
           std::find(linears.begin(), linears.end(), static_cast<size_t>(use.first)) != linears.end();
  });
  if (producer < 0 || !alone) return DividerPlace::product;
  const Node& maker = program.nodes[static_cast<size_t>(producer)];
  if (divides_as_norm(program, maker)) return DividerPlace::norm;
  return divides_as_linear(program, uses, maker) ? DividerPlace::linear : DividerPlace::product;
}

Program divide_channels(const Program& program, const std::vector<ChannelDivision>& divisions) {
  return ChannelDivider(program).run(divisions);
}

}  // namespace lissome
