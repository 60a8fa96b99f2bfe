// When a native kernel agrees with ATen on a case.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace lissome {

// Of the largest finite element of a result. A result of bytes may lie `steps` from what ATen gives.
struct CaseTolerance {
  double relative = 0;
  int steps = 0;
};

// Whether the program has numbers in 8 bits.
bool holds_bytes(const std::string& text);
// By the narrowest numbers that the program has: bf16 is rounded once more between fused steps, a number that lies
// between two bytes may become either.
CaseTolerance choose_tolerance(const std::string& text);
// Whether infinities and NaN come out where they do in ATen: not of products, whose sums have another order, not of
// returned statistics, where a running mean meets infinity - infinity and a sum does not, and not of bytes.
bool keeps_special_numbers(const std::string& text);
// Empty when it agrees, else what differs. NaN agrees with NaN, an infinity with the same one.
std::string find_case_fault(const at::Tensor& seen, const at::Tensor& expected, const CaseTolerance& tolerance);

}  // namespace lissome
