// See gradient_compression.h.
#include "lissome/train/loop/learn/gradient_compression.h"

#include <cstdio>

namespace lissome {
namespace {

std::string describe_from(int64_t dense_steps) { return " after " + std::to_string(dense_steps) + " steps"; }

std::string describe(const DenseGradients& dense) { return std::string(dtype_name(dense.dtype)); }
std::string describe(const TopKGradients& top) {
  char share[32];
  std::snprintf(share, sizeof share, "%.9g", top.share);
  return std::string("topk:") + share + describe_from(top.dense_steps);
}
std::string describe(const PowerSgdGradients& power) {
  return "powersgd:" + std::to_string(power.rank) + describe_from(power.dense_steps);
}
std::string describe(const GradientSum&) { return "a function"; }

}  // namespace

std::string describe_compression(const GradientCompression& compression) {
  return std::visit([](const auto& own) { return describe(own); }, compression);
}

}  // namespace lissome
