// Chains of transposes, permutes, reshapes and selections: what two of them do, one can do, or none; what a longer
// chain does, a reshape, selections, a permute and another reshape do, or some of these.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "lissome/pass/layout_factors.h"
#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// What keeps the order of elements.
constexpr std::array kReshapes = {"aten::reshape", "aten::flatten.using_ints", "aten::unflatten.int", "aten::unsqueeze",
                                  "aten::squeeze", "aten::squeeze.dim",        "aten::squeeze.dims",  "aten::view_as"};

bool is_reshape(const Node& node) {
  return std::find(kReshapes.begin(), kReshapes.end(), node.op.name()) != kReshapes.end();
}

using Permutation = std::vector<int64_t>;

std::optional<int64_t> read_dimension(const Argument& argument, size_t rank) {
  const auto* dimension = argument.get<int64_t>();
  if (dimension == nullptr) return std::nullopt;
  const int64_t found = *dimension < 0 ? *dimension + static_cast<int64_t>(rank) : *dimension;
  return found >= 0 && found < static_cast<int64_t>(rank) ? std::optional(found) : std::nullopt;
}

// What a transpose or permute does: result dimension i is input dimension p[i].
std::optional<Permutation> read_permutation(Rewriter& rewriter, const Node& node) {
  const bool transpose = node.is("aten::transpose.int");
  if (!transpose && !node.is("aten::permute")) return std::nullopt;
  const ValueType& type = rewriter.type_of(node.argument("self"));
  if (type.kind != ValueKind::tensor || !type.sized) return std::nullopt;
  const size_t rank = type.sizes.size();
  Permutation permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  if (transpose) {
    const auto first = read_dimension(node.argument("dim0"), rank);
    const auto second = read_dimension(node.argument("dim1"), rank);
    if (!first || !second || rank == 0) return std::nullopt;
    std::swap(permutation[static_cast<size_t>(*first)], permutation[static_cast<size_t>(*second)]);
    return permutation;
  }
  const Argument& dims = node.argument("dims");
  if (!dims.is_list() || dims.list().size() != rank) return std::nullopt;
  for (size_t i = 0; i < rank; ++i) {
    const auto dimension = read_dimension(dims.list()[i], rank);
    if (!dimension) return std::nullopt;
    permutation[i] = *dimension;
  }
  return permutation;
}

bool is_identity(const Permutation& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool merge_permutations(Rewriter& rewriter, int position) {
  const Node& outer = rewriter.node(position);
  const std::optional<Permutation> second = read_permutation(rewriter, outer);
  if (!second) return false;
  const Argument self = rewriter.resolve(outer.argument("self"));
  if (is_identity(*second)) return rewriter.replace_value(outer.result(), self);
  const Node* inner = rewriter.producer(self.value());
  const std::optional<Permutation> first = inner == nullptr ? std::nullopt : read_permutation(rewriter, *inner);
  if (!first) return false;
  Permutation both(first->size());
  for (size_t i = 0; i < both.size(); ++i) both[i] = (*first)[static_cast<size_t>((*second)[i])];
  const Argument source = rewriter.resolve(inner->argument("self"));
  if (is_identity(both)) return rewriter.replace_value(outer.result(), source);
  return rewriter.replace_node(position, Op::find("aten::permute"), {source, ArgumentList(both.begin(), both.end())});
}

// The sizes that a reshape asks for do not depend on the shape of its input: both ends hold the same number of
// elements, so that even -1 stays what it was.
bool merge_reshapes(Rewriter& rewriter, int position) {
  const Node& outer = rewriter.node(position);
  if (!outer.is("aten::reshape")) return false;
  const Argument self = rewriter.resolve(outer.argument("self"));
  const Node* inner = rewriter.producer(self.value());
  if (inner == nullptr || !is_reshape(*inner)) return false;
  const Argument source = rewriter.resolve(inner->arguments.front());
  const ValueType& before = rewriter.type_of(source);
  const ValueType& after = rewriter.type_of(outer.result());
  if (before.sized && before == after) return rewriter.replace_value(outer.result(), source);
  return rewriter.replace_node(position, outer.op, {source, outer.argument("shape")});
}

// A chain of single steps that ends in one node.
class LayoutChain {
 public:
  LayoutChain(Rewriter& rewriter, int end) : rewriter_(rewriter), end_(end) {}

  bool merge() {
    if (!find_steps()) return false;
    const ValueType& source = rewriter_.type_of(source_);
    if (source.kind != ValueKind::tensor || !source.sized) return false;
    LayoutFactors factors(source.sizes);
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (!apply(**step, factors)) return false;
    }
    const LayoutFactors::Way way = factors.find_way();
    return way.count() < own_ && emit(way);
  }

 private:
  const Node& end() { return rewriter_.node(end_); }

  // Upwards as long as there are steps; those that only this chain reads would go.
  bool find_steps() {
    Argument value = end().result();
    for (bool only = true;;) {
      const Node* node = value.is_value() ? rewriter_.producer(value.value()) : nullptr;
      if (node == nullptr || node->results.size() != 1 || !is_step(*node)) break;
      only = only && (steps_.empty() || rewriter_.has_one_use(value.value()));
      own_ += only;
      steps_.push_back(node);
      value = rewriter_.resolve(node->arguments.front());
    }
    source_ = value;
    return steps_.size() > 1;
  }

  bool is_step(const Node& node) {
    return is_reshape(node) || node.is("aten::select.int") || read_permutation(rewriter_, node);
  }

  bool apply(const Node& node, LayoutFactors& factors) {
    const ValueType& type = rewriter_.type_of(node.result());
    if (!type.sized) return false;
    if (is_reshape(node)) return factors.reshape(type.sizes);
    if (const auto order = read_permutation(rewriter_, node)) return factors.permute(*order);
    const auto dim = read_dimension(node.argument("dim"), type.sizes.size() + 1);
    const auto* index = node.argument("index").get<int64_t>();
    return dim && index != nullptr && factors.select(*dim, *index);
  }

  // Sizes as arguments: one that varies is -1, further ones are read off the source.
  std::optional<ArgumentList> name_sizes(const std::vector<Dimension>& sizes) {
    if (auto literals = literal_sizes(sizes)) return literals;
    const std::vector<Dimension> known = rewriter_.type_of(source_).sizes;
    ArgumentList names;
    bool open = false;
    for (const Dimension& size : sizes) {
      const auto place = std::find(known.begin(), known.end(), size);
      if (const auto number = size.constant()) {
        if (*number == 0) return std::nullopt;
        names.emplace_back(*number);
      } else if (place != known.end()) {
        ValueType integer;
        integer.kind = ValueKind::integer;
        names.emplace_back(rewriter_.insert_before(end_, Op::find("aten::sym_size.int"),
                                                   {source_, static_cast<int64_t>(place - known.begin())}, {integer},
                                                   end().origin));
      } else {
        if (std::exchange(open, true)) return std::nullopt;
        names.emplace_back(-1);
      }
    }
    return names;
  }

  struct Step {
    Op op;
    ArgumentList arguments;  // behind the value
    std::vector<Dimension> sizes;
  };

  bool emit(const LayoutFactors::Way& way) {
    std::vector<Step> steps;
    std::vector<Dimension> sizes = rewriter_.type_of(source_).sizes;
    const auto add = [&](std::string_view op, ArgumentList arguments) {
      steps.push_back({Op::find(op), std::move(arguments), sizes});
    };
    const auto reshape = [&](const std::vector<Dimension>& to) {
      const auto names = name_sizes(sizes = to);
      if (names) add("aten::reshape", {Argument(*names)});
      return names.has_value();
    };
    if (way.split && !reshape(*way.split)) return false;
    for (const auto& [dim, index] : way.selections) {
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
      add("aten::select.int", {dim, index});
    }
    if (way.order) {
      std::vector<Dimension> moved;
      for (const int64_t dim : *way.order) moved.push_back(sizes[static_cast<size_t>(dim)]);
      sizes = std::move(moved);
      add("aten::permute", {Argument(ArgumentList(way.order->begin(), way.order->end()))});
    }
    if (way.merge) {
      const bool named = end().is("aten::reshape");
      if (named) {
        sizes = *way.merge;
        add("aten::reshape", {end().argument("shape")});
      } else if (!reshape(*way.merge)) {
        return false;
      }
    }
    return place(steps);
  }

  bool place(const std::vector<Step>& steps) {
    const ValueType type = rewriter_.type_of(end().result());
    if (steps.empty()) {
      rewriter_.replace_value(end().result(), source_);
      return true;
    }
    Argument value = source_;
    for (const Step& step : steps) {
      ArgumentList arguments = {value};
      arguments.insert(arguments.end(), step.arguments.begin(), step.arguments.end());
      if (&step == &steps.back()) {
        rewriter_.replace_node(end_, step.op, std::move(arguments));
      } else {
        value = rewriter_.insert_before(end_, step.op, std::move(arguments), {tensor_type(type.dtype, step.sizes)},
                                        end().origin);
      }
    }
    return true;
  }

  Rewriter& rewriter_;
  int end_;
  int own_ = 0;
  Argument source_;
  std::vector<const Node*> steps_;  // from the end
};

}  // namespace

int merge_layout_chains(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    if (merge_permutations(rewriter, position)) continue;
    while (!rewriter.is_dead(position) && merge_reshapes(rewriter, position)) {
    }
    if (!rewriter.is_dead(position) && rewriter.node(position).op.has_schema() &&
        !rewriter.node(position).results.empty() && rewriter.node(position).results[0] != ValueId::none) {
      LayoutChain(rewriter, position).merge();
    }
  }
  return rewriter.finish();
}

}  // namespace lissome
