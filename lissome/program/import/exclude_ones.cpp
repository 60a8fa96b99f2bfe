#include "lissome/program/import/exclude_ones.h"

#include <algorithm>
#include <array>
#include <set>

namespace lissome {
namespace {

constexpr std::array kSqueezes = {"aten::squeeze",      "aten::squeeze.dim",      "aten::squeeze.dims",
                                  "aten::squeeze_copy", "aten::squeeze_copy.dim", "aten::squeeze_copy.dims"};

bool is_squeeze(const Node& node) {
  return std::find(kSqueezes.begin(), kSqueezes.end(), node.op.name()) != kSqueezes.end();
}

// Whether a squeeze would take dimension `i` of a tensor away at size 1.
bool may_take(const Node& node, size_t i, size_t rank) {
  const auto names_it = [&](const Argument& dim) {
    const auto* number = dim.get<int64_t>();
    const auto position = static_cast<int64_t>(i), count = static_cast<int64_t>(rank);
    return number == nullptr || *number == position || *number + count == position;
  };
  const int dim = node.op.argument_index("dim");
  if (dim < 0) return true;
  const Argument& dims = node.arguments[static_cast<size_t>(dim)];
  return dims.is_list() ? std::ranges::any_of(dims.list(), names_it) : names_it(dims);
}

class OneExcluder {
 public:
  explicit OneExcluder(Program& program) : program_(program) {
    for (const ProgramInput& input : program.inputs) {
      for (const Dimension& size : program.value(input.value).type.sizes) {
        for (const std::string& name : size.names()) of_inputs_.insert(name);
      }
    }
  }

  void visit(const Program& program) {
    for (const Node& node : program.nodes) {
      if (is_squeeze(node) && node.arguments.front().is_value())
        visit_squeeze(node, program.value(node.arguments.front().value()).type);
      for (const auto& body : node.bodies) {
        if (body) visit(*body);
      }
    }
  }

 private:
  void visit_squeeze(const Node& node, const ValueType& type) {
    if (!type.sized) return;
    for (size_t i = 0; i < type.sizes.size(); ++i) {
      if (!type.sizes[i].constant() && may_take(node, i, type.sizes.size())) exclude(type.sizes[i]);
    }
  }

  // Sizes that grow with one dimension; 1 is met for few of its values.
  void exclude(const Dimension& size) {
    constexpr int64_t kMostRaised = 64;
    const std::vector<std::string> names = size.names();
    if (names.size() != 1 || !of_inputs_.contains(names.front())) return;
    const auto dimension = std::ranges::find(program_.dimensions, names.front(), &NamedDimension::name);
    if (dimension == program_.dimensions.end()) return;
    int64_t least = dimension->minimum;
    for (int64_t value = least; value - dimension->minimum <= kMostRaised && value <= dimension->maximum; ++value) {
      if (size.try_evaluate({{names.front(), value}}) == 1) least = value + 1;
    }
    if (least <= dimension->maximum) dimension->minimum = least;
  }

  Program& program_;
  std::set<std::string> of_inputs_;
};

}  // namespace

void exclude_ones(Program& program) { OneExcluder(program).visit(program); }

}  // namespace lissome
