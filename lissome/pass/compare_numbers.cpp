#include "lissome/pass/compare_numbers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mutex>

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

// Infinity where non-finite places differ, else relative to the largest magnitude.
double relative_difference(const at::Tensor& left, const at::Tensor& right) {
  if (left.is_complex()) return relative_difference(at::view_as_real(left), at::view_as_real(right));
  const at::Tensor finite = at::isfinite(left);
  const at::Tensor same = left.eq(right).logical_or(left.isnan().logical_and(right.isnan()));
  if (!finite.logical_or(same).all().item<bool>() || !at::equal(finite, at::isfinite(right))) return INFINITY;
  const at::Tensor zero = at::zeros_like(left, at::TensorOptions().dtype(at::kDouble));
  const at::Tensor a = at::where(finite, left.to(at::kDouble), zero),
                   b = at::where(finite, right.to(at::kDouble), zero);
  if (a.numel() == 0) return 0;
  const double difference = a.sub(b).abs().max().item<double>(), largest = a.abs().max().item<double>();
  return difference == 0 ? 0 : difference / largest;
}

void compare_tensors(const at::Tensor& before, const at::Tensor& after, std::string_view step,
                     const std::string& what) {
  LISSOME_CHECK(before.sizes() == after.sizes() && before.scalar_type() == after.scalar_type(), step,
                " changed the type of ", what);
  const bool floating = before.is_floating_point() || before.is_complex();
  const double difference = floating ? relative_difference(before, after) : (at::equal(before, after) ? 0 : INFINITY);
  LISSOME_CHECK(difference <= allowed_difference(before.scalar_type()), step, " changed ", what, " by ", difference,
                " of its largest element");
}

// The generator's state is put back, so that both programs draw the same and the caller's own draws do not change.
class KeptGenerator {
 public:
  KeptGenerator() : state_(generator().get_state()) {}
  ~KeptGenerator() { restore(); }
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;
  void restore() {
    const std::lock_guard<std::mutex> lock(generator().mutex());
    generator().set_state(state_);
  }

 private:
  static at::Generator& generator() {
    static at::Generator own = at::detail::getDefaultCPUGenerator();
    return own;
  }
  at::Tensor state_;
};

}  // namespace

void compare_numbers(const Program& before, const Program& after, const std::vector<c10::IValue>& inputs,
                     std::string_view step) {
  KeptGenerator kept;
  std::vector<at::Tensor> written_before, written_after;
  InterpretOptions options;
  options.written = &written_before;
  const std::vector<c10::IValue> left = interpret(before, inputs, options);
  kept.restore();
  options.written = &written_after;
  const std::vector<c10::IValue> right = interpret(after, inputs, options);
  LISSOME_CHECK(left.size() == right.size(), step, " changed the number of outputs");
  for (size_t i = 0; i < left.size(); ++i) {
    const std::string what = "output " + std::to_string(i);
    LISSOME_CHECK(left[i].isTensor() == right[i].isTensor(), step, " changed the kind of ", what);
    if (left[i].isTensor()) {
      compare_tensors(left[i].toTensor(), right[i].toTensor(), step, what);
    } else {
      LISSOME_CHECK(left[i] == right[i], step, " changed ", what);
    }
  }
  LISSOME_CHECK(written_before.size() == written_after.size(), step, " changed the number of state writes");
  for (size_t i = 0; i < written_before.size(); ++i) {
    compare_tensors(written_before[i], written_after[i], step, "state write " + std::to_string(i));
  }
}

}  // namespace lissome
