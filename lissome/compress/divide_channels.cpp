#include "lissome/compress/divide_channels.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
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

// Outputs of a linear or convolution scale with their weights where nothing but ReLU comes after: relu(x / s) =
// relu(x) / s.
bool divides_as_layer(const Program& program, const Uses& uses, const Node& node) {
  if (!is_f32_constant(program, node.argument("weight"))) return false;
  // A weight that others read would be kept twice.
  if (uses.count(node.argument("weight").value()) > 1) return false;
  if (!is_constant_or_none(program, node.argument("bias"))) return false;
  if (node.op.argument_index("act") < 0) return true;
  const std::string& activation = *node.argument("act").get<std::string>();
  return node.argument("residual").is_none() && (activation == "none" || activation == "relu");
}

bool divides_as_linear(const Program& program, const Uses& uses, const Node& node) {
  return is_linear(node) && divides_as_layer(program, uses, node);
}

bool divides_as_convolution(const Program& program, const Uses& uses, const Node& node) {
  return is_convolution(node) && node.argument("transposed") == Argument(false) &&
         divides_as_layer(program, uses, node);
}

bool scales_with_channels(const Node& node) {
  static constexpr std::array kOps = {"aten::relu", "aten::max_pool2d", "aten::avg_pool2d",
                                      "aten::adaptive_avg_pool2d"};
  return std::find(kOps.begin(), kOps.end(), node.op.name()) != kOps.end();
}

// The node that makes the value, looking through those whose result scales as their input does and has no other reader.
int find_maker(const Program& program, const Uses& uses, ValueId value) {
  int position = uses.producer[static_cast<size_t>(value)];
  while (position >= 0 && scales_with_channels(program.nodes[static_cast<size_t>(position)])) {
    const ValueId source = program.nodes[static_cast<size_t>(position)].arguments.front().value();
    if (source == ValueId::none || uses.count(source) != 1) return -1;
    position = uses.producer[static_cast<size_t>(source)];
  }
  return position;
}

class ChannelDivider {
 public:
  explicit ChannelDivider(const Program& program) : source_(program), uses_(find_uses(program)), result_(program) {}

  Program run(const std::vector<ChannelDivision>& divisions) {
    for (const ChannelDivision& division : divisions) {
      const DividerPlace place = find_divider_place(source_, uses_, division.value, division.readers);
      const bool convolutions = place == DividerPlace::convolution;
      for (const size_t position : division.readers) {
        Node& reader = result_.nodes[position];
        const at::Tensor weight = find_constant(result_, reader.argument("weight"));
        scale(reader, "weight", convolutions ? spread_factors(division.factors, weight) : division.factors);
      }
      const at::Tensor inverse = division.factors.reciprocal();
      if (place == DividerPlace::product) {
        multiply_value(division, inverse);
        continue;
      }
      Node& maker = result_.nodes[static_cast<size_t>(find_maker(source_, uses_, division.value))];
      const at::Tensor weight = find_constant(result_, maker.argument("weight"));
      scale(maker, "weight", place == DividerPlace::norm ? inverse : spread_outputs(inverse, weight));
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
    const size_t first = *std::min_element(division.readers.begin(), division.readers.end());
    result_.add_node(Op::find("aten::mul.Tensor"), {division.value, constant}, {value.type},
                     result_.nodes[first].origin);
    products_.emplace_back(first, std::move(result_.nodes.back()));
    result_.nodes.pop_back();
    for (const size_t position : division.readers) {
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
                                const std::vector<size_t>& readers) {
  const auto& uses_of_value = uses.by_value[static_cast<size_t>(value)];
  const bool alone = std::all_of(uses_of_value.begin(), uses_of_value.end(), [&](const auto& use) {
    return use.second == 0 &&
           std::find(readers.begin(), readers.end(), static_cast<size_t>(use.first)) != readers.end();
  });
  const int maker = find_maker(program, uses, value);
  if (maker < 0 || !alone) return DividerPlace::product;
  const Node& node = program.nodes[static_cast<size_t>(maker)];
  const bool convolutions =
      std::all_of(readers.begin(), readers.end(), [&](size_t reader) { return is_convolution(program.nodes[reader]); });
  if (convolutions)
    return divides_as_convolution(program, uses, node) ? DividerPlace::convolution : DividerPlace::product;
  if (maker != uses.producer[static_cast<size_t>(value)]) return DividerPlace::product;
  if (divides_as_norm(program, node)) return DividerPlace::norm;
  return divides_as_linear(program, uses, node) ? DividerPlace::linear : DividerPlace::product;
}

at::Tensor spread_outputs(const at::Tensor& factors, const at::Tensor& weight) {
  std::vector<int64_t> sizes(static_cast<size_t>(weight.dim()), 1);
  sizes[0] = -1;
  return factors.reshape(sizes);
}

at::Tensor spread_factors(const at::Tensor& factors, const at::Tensor& weight) {
  const int64_t groups = factors.size(0) / weight.size(1);
  std::vector<int64_t> sizes(static_cast<size_t>(weight.dim()), 1);
  sizes[0] = weight.size(0), sizes[1] = weight.size(1);
  return factors.reshape({groups, 1, weight.size(1)})
      .expand({groups, weight.size(0) / groups, weight.size(1)})
      .reshape(sizes);
}

Program divide_channels(const Program& program, const std::vector<ChannelDivision>& divisions) {
  return ChannelDivider(program).run(divisions);
}

}  // namespace lissome
