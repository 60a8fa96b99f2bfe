// See case_agreement.h.
#include "tests/cases/case_agreement.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <sstream>

namespace lissome {

bool holds_bytes(const std::string& text) { return std::regex_search(text, std::regex("\\bu8\\[|\\bi8\\[|int8")); }

CaseTolerance choose_tolerance(const std::string& text) {
  if (holds_bytes(text)) return {0.02, 1};
  if (text.find("bf16") != std::string::npos) return {1.0 / 64, 0};
  return {1e-5, 0};
}

bool keeps_special_numbers(const std::string& text) {
  static const std::regex sums(
      "conv|linear|mm|matmul|attention|products|lstm|gru|u8|i8|int8|# force|backward|cumsum|native_");
  return !std::regex_search(text, sums);
}

std::string find_case_fault(const at::Tensor& seen, const at::Tensor& expected, const CaseTolerance& tolerance) {
  std::ostringstream text;
  if (seen.scalar_type() != expected.scalar_type() || seen.sizes() != expected.sizes()) {
    text << seen.scalar_type() << " " << seen.sizes() << " instead of " << expected.scalar_type() << " "
         << expected.sizes();
    return text.str();
  }
  const at::Tensor a = seen.to(at::kDouble).contiguous(), b = expected.to(at::kDouble).contiguous();
  const double *ours = a.data_ptr<double>(), *theirs = b.data_ptr<double>();
  double largest = 0, off = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const bool same = ours[i] == theirs[i] || (std::isnan(ours[i]) && std::isnan(theirs[i]));
    if (same) continue;
    if (!std::isfinite(ours[i]) || !std::isfinite(theirs[i])) {
      text << ours[i] << " instead of " << theirs[i] << " at element " << i;
      return text.str();
    }
    off = std::max(off, std::abs(ours[i] - theirs[i]));
  }
  for (int64_t i = 0; i < b.numel(); ++i) {
    if (std::isfinite(theirs[i])) largest = std::max(largest, std::abs(theirs[i]));
  }
  const bool whole = !expected.is_floating_point();
  const double most = whole ? tolerance.steps : tolerance.relative * largest;
  if (off <= most) return {};
  text << "differs by " << off << (whole ? " steps" : "") << ", of a largest element of " << largest;
  return text.str();
}

}  // namespace lissome
