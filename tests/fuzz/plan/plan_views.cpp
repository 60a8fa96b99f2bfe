// Views of every form, made to fit the value that they look at.
#include <numeric>

#include "tests/fuzz/plan/plan_edits.h"

namespace lissome {
namespace {

struct View {
  Sizes sizes;
  Json attributes;
  int measured = -1;  // the value whose size the place begins at
};

Sizes split_number(int64_t number, FuzzRandom& random) {
  std::vector<int64_t> factors;
  for (int64_t i = 1; i <= number && i <= 64; ++i)
    if (number % i == 0) factors.push_back(i);
  if (factors.empty()) return {number};
  const int64_t factor = random.pick(factors);
  return {factor, number / factor};
}

View reshape(const Sizes& sizes, FuzzRandom& random) {
  const int64_t elements = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  if (random.once_in(3)) return {{elements}, {{"form", "reshape"}}};
  return {split_number(elements, random), {{"form", "reshape"}}};
}

View split(Sizes sizes, FuzzRandom& random) {
  const Sizes parts = split_number(sizes.back(), random);
  sizes.pop_back();
  sizes.insert(sizes.end(), parts.begin(), parts.end());
  return {sizes, {{"form", "split"}}};
}

View merge(Sizes sizes) {
  const int64_t last = sizes.back();
  sizes.pop_back();
  if (!sizes.empty()) sizes.back() *= last;
  return {sizes, {{"form", "merge"}}};
}

View permute(const Sizes& sizes, FuzzRandom& random) {
  std::vector<size_t> dims(sizes.size());
  std::iota(dims.begin(), dims.end(), 0);
  for (size_t i = dims.size(); i > 1; --i) std::swap(dims[i - 1], dims[random.below(i)]);
  Sizes permuted;
  for (const size_t dim : dims) permuted.push_back(sizes[dim]);
  return {permuted, {{"form", "permute"}, {"dims", dims}}};
}

View expand(Sizes sizes, FuzzRandom& random) {
  for (int64_t& size : sizes)
    if (size == 1) size = pick_size(random);
  if (sizes.size() < 5) sizes.insert(sizes.begin(), pick_size(random));
  return {sizes, {{"form", "expand"}}};
}

View slice(Sizes sizes, FuzzRandom& random) {
  const size_t dim = random.below(sizes.size());
  const int64_t size = sizes[dim];
  const int64_t start = size > 0 ? static_cast<int64_t>(random.below(static_cast<size_t>(size) + 1)) : 0;
  const auto step = static_cast<int64_t>(1 + random.below(3));
  sizes[dim] = (size - start + step - 1) / step;
  const int64_t given = random.once_in(3) ? start - size : start;
  return {sizes, {{"form", "slice"}, {"dim", dim}, {"start", given}, {"step", step}}};
}

View select(Sizes sizes, FuzzRandom& random) {
  const size_t dim = random.below(sizes.size());
  const int64_t index = sizes[dim] > 0 ? static_cast<int64_t>(random.below(static_cast<size_t>(sizes[dim]))) : 0;
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  return {sizes, {{"form", "select"}, {"dim", dim}, {"index", index}}};
}

View make_view(const Sizes& sizes, FuzzRandom& random) {
  if (sizes.empty()) return random.once_in(2) ? expand(sizes, random) : reshape(sizes, random);
  switch (random.below(7)) {
    case 0: return reshape(sizes, random);
    case 1: return split(sizes, random);
    case 2: return merge(sizes);
    case 3: return permute(sizes, random);
    case 4: return expand(sizes, random);
    case 5: return slice(sizes, random);
    default: return select(sizes, random);
  }
}

// The place begins at the size of a dimension of another value.
void measure(View& view, const PlanDocument& document, const std::vector<int>& defined, FuzzRandom& random) {
  const int other = random.pick(defined);
  const std::optional<Sizes> sizes = document.sizes_of(other);
  if (!sizes || sizes->empty()) return;
  view.measured = other;
  view.attributes["measured"] = random.below(sizes->size());
  view.attributes["start"] = 0;
}

}  // namespace

void insert_view(PlanDocument& document, FuzzRandom& random) {
  Json& steps = document.steps();
  if (steps.size() > 24) return;
  const size_t position = random.below(steps.size() + 1);
  const std::vector<int> defined = document.list_defined(position);
  if (defined.empty()) return;
  const int source = random.pick(defined);
  const std::optional<Sizes> sizes = document.sizes_of(source);
  if (!sizes || sizes->size() > 7) return;
  View view = make_view(*sizes, random);
  if (view.attributes["form"] == "slice" && random.once_in(4)) measure(view, document, defined, random);
  const int result = document.add_value("view", document.dtype_of(source), view.sizes);
  Json operands = Json::array({source});
  if (view.measured >= 0) operands.push_back(view.measured);
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(position), {{"kernel", "view"},
                                                                       {"attributes", view.attributes},
                                                                       {"operands", operands},
                                                                       {"results", Json::array({result})}});
  if (!random.once_in(3)) document.replace_operand(position + 1, source, result, random);
  if (random.once_in(2)) document.add_output(result);
}

}  // namespace lissome
