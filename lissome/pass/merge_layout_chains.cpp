// Chains of transposes, permutes and reshapes: what two of them do, one can do, or none.
#include <algorithm>
#include <array>
#include <numeric>

#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

// What keeps the order of elements.
constexpr std::array kReshapes = {"aten::reshape", "aten::flatten.using_ints", "aten::unflatten.int", "aten::unsqueeze",
                                  "aten::squeeze", "aten::squeeze.dim",        "aten::squeeze.dims",  "aten::view_as"};

using Permutation = std::vector<int64_t>;

std::optional<int64_t> read_dimension(const Argument& argument, size_t rank) {
  const auto* dimension = argument.get<int64_t>();
  if (dimension == nullptr) return std::nullopt;
  return *dimension < 0 ? *dimension + static_cast<int64_t>(rank) : *dimension;
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
  if (is_identity(*second)) {
    rewriter.replace_value(outer.result(), self);
    return true;
  }
  const Node* inner = rewriter.producer(self.value());
  const std::optional<Permutation> first = inner == nullptr ? std::nullopt : read_permutation(rewriter, *inner);
  if (!first) return false;
  Permutation both(first->size());
  for (size_t i = 0; i < both.size(); ++i) both[i] = (*first)[static_cast<size_t>((*second)[i])];
  const Argument source = rewriter.resolve(inner->argument("self"));
  if (is_identity(both)) {
    rewriter.replace_value(outer.result(), source);
  } else {
    rewriter.replace_node(position, Op::find("aten::permute"), {source, ArgumentList(both.begin(), both.end())});
  }
  return true;
}

// The sizes that a reshape asks for do not depend on the shape of its input: both ends hold the same number of
// elements, so that even -1 stays what it was.
bool merge_reshapes(Rewriter& rewriter, int position) {
  const Node& outer = rewriter.node(position);
  if (!outer.is("aten::reshape")) return false;
  const Argument self = rewriter.resolve(outer.argument("self"));
  const Node* inner = rewriter.producer(self.value());
  if (inner == nullptr) return false;
  if (std::find(kReshapes.begin(), kReshapes.end(), inner->op.name()) == kReshapes.end()) return false;
  const Argument source = rewriter.resolve(inner->arguments.front());
  const ValueType& before = rewriter.type_of(source);
  const ValueType& after = rewriter.type_of(outer.result());
  if (before.sized && before == after) {
    rewriter.replace_value(outer.result(), source);
  } else {
    rewriter.replace_node(position, outer.op, {source, outer.argument("shape")});
  }
  return true;
}

}  // namespace

int merge_layout_chains(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    if (merge_permutations(rewriter, position)) continue;
    while (!rewriter.is_dead(position) && merge_reshapes(rewriter, position)) {
    }
  }
  return rewriter.finish();
}

}  // namespace lissome
