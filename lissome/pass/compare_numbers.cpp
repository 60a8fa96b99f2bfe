#include "lissome/pass/compare_numbers.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace lissome {
namespace {

double allowed_difference(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
    case at::kBFloat16: return 1e-2;
    case at::kDouble:
    case at::kComplexDouble: return 1e-10;
    default: return 1e-4;
  }
}

double relative_difference(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor finite = at::isfinite(left);
  if (!at::equal(finite, at::isfinite(right))) return INFINITY;
  const auto wide = left.is_complex() ? at::kComplexDouble : at::kDouble;
  const at::Tensor zero = at::zeros_like(left, at::TensorOptions().dtype(wide));
  const at::Tensor a = at::where(finite, left.to(wide), zero);
  const at::Tensor b = at::where(finite, right.to(wide), zero);
  if (a.numel() == 0) return 0;
  const double difference = a.sub(b).abs().max().item().toDouble();
  const double largest = a.abs().max().item().toDouble();
  return difference == 0 ? 0 : difference / largest;
}

}  // namespace

void compare_numbers(const Program& before, const Program& after, const std::vector<c10::IValue>& inputs,
                     std::string_view step) {
  const std::vector<c10::IValue> left = interpret(before, inputs);
  const std::vector<c10::IValue> right = interpret(after, inputs);
  LISSOME_CHECK(left.size() == right.size(), step, " changed the number of outputs");
  for (size_t i = 0; i < left.size(); ++i) {
    if (!left[i].isTensor()) continue;
    const at::Tensor& a = left[i].toTensor();
    const at::Tensor& b = right[i].toTensor();
    LISSOME_CHECK(a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type(), step, " changed the type of output ",
                  i);
    const bool floating = a.is_floating_point() || a.is_complex();
    const double difference = floating ? relative_difference(a, b) : (at::equal(a, b) ? 0 : INFINITY);
    LISSOME_CHECK(difference <= allowed_difference(a.scalar_type()), step, " changed output ", i, " by ", difference,
                  " of its largest element");
  }
}

}  // namespace lissome
