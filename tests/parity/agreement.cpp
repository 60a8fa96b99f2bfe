// Distances in double precision; see agreement.h.
#include "agreement.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>

#include <sstream>

#include "lissome/base.h"

namespace lissome {
namespace {

at::Tensor widen(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().to(tensor.is_complex() ? at::kComplexDouble : at::kDouble);
}

// Non-finite elements are equal: NaN with NaN, infinity with the same infinity.
bool same_non_finite(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_complex()) return same_non_finite(at::view_as_real(a), at::view_as_real(b));
  const at::Tensor finite_a = at::isfinite(a), finite_b = at::isfinite(b);
  if (!finite_a.equal(finite_b)) return false;
  const at::Tensor left = a.masked_select(finite_a.logical_not()), right = b.masked_select(finite_b.logical_not());
  return left.eq(right).logical_or(left.isnan().logical_and(right.isnan())).all().item<bool>();
}

// max|a-b| / max|b| where both are finite.
double measure_distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor finite = at::isfinite(b).logical_and(at::isfinite(a));
  const at::Tensor difference = a.sub(b).masked_select(finite).abs(), scale = b.masked_select(finite).abs();
  if (difference.numel() == 0) return 0;
  const double greatest = difference.max().item<double>(), norm = scale.max().item<double>();
  if (greatest == 0) return 0;
  return norm > 0 ? greatest / norm : INFINITY;
}

Agreement refuse(std::string reason) { return {false, INFINITY, false, std::move(reason)}; }

Agreement compare_tensors(const at::Tensor& seen, const at::Tensor& expected, const c10::IValue& f64) {
  std::ostringstream text;
  if (seen.scalar_type() != expected.scalar_type()) {
    text << "dtype " << seen.scalar_type() << " instead of " << expected.scalar_type();
    return refuse(text.str());
  }
  if (seen.sizes() != expected.sizes()) {
    text << "sizes " << seen.sizes() << " instead of " << expected.sizes();
    return refuse(text.str());
  }
  if (!expected.is_floating_point() && !expected.is_complex()) {
    return seen.equal(expected) ? Agreement{} : refuse("values differ");
  }
  const at::Tensor a = widen(seen), b = widen(expected);
  if (!same_non_finite(a, b)) return refuse("non-finite elements differ");
  Agreement agreement;
  agreement.error = measure_distance(a, b);
  if (agreement.error <= kGreatestError) return agreement;
  text << "error " << agreement.error;
  if (f64.isTensor()) {
    const at::Tensor truth = widen(f64.toTensor());
    const double ours = measure_distance(a, truth), theirs = measure_distance(b, truth);
    agreement.by_f64 = true;
    agreement.agrees = ours <= 2 * theirs;
    text << ", from float64: ours " << ours << ", PyTorch's " << theirs;
  } else {
    agreement.agrees = false;
  }
  agreement.reason = text.str();
  return agreement;
}

}  // namespace

Agreement compare_values(const c10::IValue& seen, const c10::IValue& expected, const c10::IValue& f64) {
  if (expected.isNone()) return {};
  if (expected.isTensor()) {
    if (!seen.isTensor()) return refuse("a " + seen.tagKind() + " instead of a tensor");
    return compare_tensors(seen.toTensor(), expected.toTensor(), f64);
  }
  if (seen.isTensor() || !(seen == expected)) {
    std::ostringstream text;
    text << seen << " instead of " << expected;
    return refuse(text.str());
  }
  return {};
}

}  // namespace lissome
