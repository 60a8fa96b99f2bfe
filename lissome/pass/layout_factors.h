// What reshapes, permutations and selections do to a value, told by the factors of its sizes: [17, 4*n, 16] made of
// [n, 17, 64] is n, 17, 4 and 16 in another order. Whatever chain led there, the factors say what it comes to.
#pragma once

#include <optional>
#include <vector>

#include "lissome/program.h"

namespace lissome {

class LayoutFactors {
 public:
  explicit LayoutFactors(const std::vector<Dimension>& sizes);

  // Each gives false, and leaves nothing to be used, where the factors cannot tell.
  bool reshape(const std::vector<Dimension>& sizes);
  bool permute(const std::vector<int64_t>& order);
  bool select(int64_t dim, int64_t index);

  // The shortest way from the source to where it is now: a reshape into factors, selections, a permutation, a reshape.
  struct Way {
    std::optional<std::vector<Dimension>> split;
    std::vector<std::pair<int64_t, int64_t>> selections;  // dimension and index, one after the other
    std::optional<std::vector<int64_t>> order;
    std::optional<std::vector<Dimension>> merge;
    int count() const;  // of nodes
  };
  Way find_way() const;

 private:
  struct Factor {
    Dimension size;
    std::optional<int64_t> index;  // selected
  };
  using Group = std::vector<int>;  // factors of one dimension, by index

  int add_factor(Dimension size);
  std::optional<Dimension> divide(const Dimension& size, const Dimension& divisor) const;
  bool split(int factor, const Dimension& left, const Dimension& right);
  // The next factors of `sequence` whose product is `size`; may split one.
  std::optional<Group> take(std::vector<int>& sequence, size_t& next, const Dimension& size);
  std::vector<Dimension> sizes_of(const std::vector<int>& factors) const;
  std::vector<Dimension> products_of(const std::vector<Group>& groups) const;

  std::vector<Factor> factors_;
  std::vector<Group> source_, now_;  // by dimension; a size of one has no factors
};

}  // namespace lissome
