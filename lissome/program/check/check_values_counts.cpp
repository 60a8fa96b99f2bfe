// Checks of numbers that say how often something is done or made: terms of a sum for each element, tensors of a list.
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lissome/program/check/check_values_rows.h"

namespace lissome {
namespace {

// (self, p): p terms are summed for each element.
void check_order(IValueSpan arguments) {
  const int64_t order = arguments[1].toInt();
  require_value(order >= 1 && order <= 4096, "the order is ", order, ", allowed are 1 to 4096");
}

// Lists of tensors are made outside of the allocator, some before anything is looked at.
constexpr int64_t kMostParts = int64_t{1} << 16;

void require_parts(int64_t parts) {
  require_value(parts <= kMostParts, parts, " tensors in a list, allowed are ", kMostParts);
}

// (self, r, with_replacement): libtorch fills a grid of n^r, and keeps r tensors.
void check_members(IValueSpan arguments) {
  constexpr int64_t kMostMembers = 64;
  constexpr double kLargestGrid = 1 << 24;
  const int64_t members = arguments[1].toInt();
  require_value(members <= kMostMembers, "combinations have ", members, " members, allowed are ", kMostMembers);
  const double grid = std::pow(static_cast<double>(arguments[0].toTensor().numel()), static_cast<double>(members));
  require_value(grid <= kLargestGrid, "combinations of ", members, " members are chosen from a grid of ", grid,
                " elements, allowed are ", kLargestGrid);
}

// (self, sections, ...)
void check_count(IValueSpan arguments) {
  if (arguments[1].isInt()) return require_parts(arguments[1].toInt());
  const at::Tensor& sections = arguments[1].toTensor();
  if (sections.dim() == 0) require_parts(sections.item().toLong());
}

int64_t size_along(const c10::IValue& tensor, const c10::IValue& dim) {
  return tensor.toTensor().dim() == 0 ? 1 : tensor.toTensor().size(dim.toInt());
}

// (self, dim)
void check_items(IValueSpan arguments) { require_parts(size_along(arguments[0], arguments[1])); }

// (self, size, dim)
void check_parts_of_size(IValueSpan arguments) {
  const int64_t size = arguments[1].toInt();
  if (size > 0) require_parts(size_along(arguments[0], arguments[2]) / size);
}

// (self, chunks, dim): of what has no elements libtorch makes as many chunks as are asked for.
void check_chunks(IValueSpan arguments) {
  const int64_t size = size_along(arguments[0], arguments[2]), chunks = arguments[1].toInt();
  require_parts(size == 0 ? chunks : std::min(size, chunks));
}

// The sum of repeats is the size of what is written, and wraps around in libtorch.
void check_sum(const at::Tensor& repeats) {
  constexpr double kMostRepeats = 1e12;
  if (repeats.numel() == 0) return;
  const at::Tensor numbers = repeats.to(at::kDouble);
  require_value(numbers.ge(0).all().item().toBool(), "a number of repeats is negative");
  const double sum = numbers.sum().item().toDouble();
  require_value(sum <= kMostRepeats, "the repeats add up to ", sum, ", allowed are ", kMostRepeats);
}

// (repeats), and (self, repeats, dim)
void check_repeats(IValueSpan arguments) { check_sum(arguments[0].toTensor()); }
void check_repeats_of_rows(IValueSpan arguments) { check_sum(arguments[1].toTensor()); }

constexpr std::string_view kFar =
    ": zeta adds a term for each step from there up to 9; allowed are numbers from -4096 on, and integers";

// Zeta adds a term for each step from q up to 9; for integers below 1 it is infinite without a sum.
void check_steps(const c10::IValue& q) {
  constexpr double kLeast = -4096;
  const auto is_far = [](double number) { return number < kLeast && number != std::floor(number); };
  if (q.isScalar())
    return require_value(!q.isDouble() || !is_far(q.toDouble()), "'q' is ", q.toScalar().toDouble(), kFar);
  const at::Tensor& tensor = q.toTensor();
  if (!tensor.is_floating_point()) return;
  const at::Tensor numbers = tensor.to(at::kDouble);
  const bool far = numbers.lt(kLeast).logical_and(numbers.ne(numbers.floor())).any().item().toBool();
  require_value(!far, "an element is below -4096", kFar);
}

// (self, other): zeta of a scalar or a tensor
void check_zeta(IValueSpan arguments) { check_steps(arguments[1]); }

// (n, self), and in place (self, n); from the second derivative on it is a zeta
void check_polygamma(IValueSpan arguments) {
  const size_t order = arguments[0].isInt() ? 0 : 1;
  if (arguments[order].toInt() >= 2) check_steps(arguments[1 - order]);
}

// (count, prob): the sampler draws until a number fits, which none does to NaN.
void check_trials(IValueSpan arguments) {
  require_value(!arguments[0].toTensor().isnan().any().item().toBool(), "the counts hold NaN");
}

}  // namespace

// (x, n): n steps of a recurrence for each element.
void check_degree(IValueSpan arguments) {
  constexpr double kMost = 4096;
  const c10::IValue& degree = arguments[1];
  const bool fits = degree.isTensor() ? degree.toTensor().to(at::kDouble).abs().le(kMost).all().item().toBool()
                                      : std::abs(degree.toScalar().toDouble()) <= kMost;
  require_value(fits, "'n' must lie within -", kMost, " and ", kMost);
}

std::span<const ValueCheckRow> count_check_rows() {
  static constexpr std::array<ValueCheckRow, 25> kRows = {{
      {"aten::binomial", check_trials},
      {"aten::combinations", check_members},
      {"aten::tensor_split.sections", check_count},
      {"aten::tensor_split.tensor_indices_or_sections", check_count},
      {"aten::hsplit.int", check_count},
      {"aten::vsplit.int", check_count},
      {"aten::dsplit.int", check_count},
      {"aten::unbind.int", check_items},
      {"aten::unbind_copy.int", check_items},
      {"aten::split.Tensor", check_parts_of_size},
      {"aten::split_copy.Tensor", check_parts_of_size},
      {"aten::unsafe_split.Tensor", check_parts_of_size},
      {"aten::chunk", check_chunks},
      {"aten::unsafe_chunk", check_chunks},
      {"aten::repeat_interleave.Tensor", check_repeats},
      {"aten::repeat_interleave.self_Tensor", check_repeats_of_rows},
      {"aten::polygamma", check_polygamma},
      {"aten::polygamma_", check_polygamma},
      {"aten::special_polygamma", check_polygamma},
      {"aten::special_zeta", check_zeta},
      {"aten::special_zeta.self_scalar", check_zeta},
      {"aten::special_zeta.other_scalar", check_zeta},
      {"aten::mvlgamma", check_order},
      {"aten::mvlgamma_", check_order},
      {"aten::special_multigammaln", check_order},
  }};
  return kRows;
}

}  // namespace lissome
