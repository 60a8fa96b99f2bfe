// Counted random numbers: a pure function of a seed, see kernel/elementwise/dropout.h, which says what they are.
#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include <array>

#include "lissome/program/op/check_arguments.h"
#include "lissome/program/op/register.h"

namespace lissome {
namespace {

constexpr int64_t kHalf = 0xffffffff;
constexpr int kRounds = 7;

struct Halves {
  at::Tensor upper, lower;
};

// Of numbers below 2^32 and a factor below 2^32, in i64: the product is put together from two that fit.
Halves multiply_halves(const at::Tensor& a, int64_t factor) {
  const at::Tensor low = a.__and__(0xffff).mul(factor), high = a.__rshift__(16).mul(factor);
  return {high.add(low.__rshift__(16)).__rshift__(16), low.add(high.__and__(0xffff).__lshift__(16)).__and__(kHalf)};
}

at::Tensor draw_numbers(int64_t count, const at::Tensor& seed, int64_t stream, at::Device device) {
  const at::Tensor index = at::arange(count, at::TensorOptions().dtype(at::kLong).device(device));
  const at::Tensor counter = index.__rshift__(6).mul(16).add(index.__and__(15));
  std::array<at::Tensor, 4> c = {counter.__and__(kHalf), counter.__rshift__(32).__and__(kHalf),
                                 at::full_like(index, stream & kHalf), at::full_like(index, stream >> 32 & kHalf)};
  at::Tensor key0 = seed.__and__(kHalf), key1 = seed.__rshift__(32).__and__(kHalf);
  for (int i = 0; i < kRounds; ++i) {
    const Halves a = multiply_halves(c[0], 0xD2511F53), b = multiply_halves(c[2], 0xCD9E8D57);
    c = {b.upper.__xor__(c[1]).__xor__(key0), b.lower, a.upper.__xor__(c[3]).__xor__(key1), a.lower};
    key0 = key0.add(0x9E3779B9).__and__(kHalf), key1 = key1.add(0xBB67AE85).__and__(kHalf);
  }
  const at::Tensor word = index.__rshift__(4).__and__(3);
  return at::where(word.eq(0), c[0], at::where(word.eq(1), c[1], at::where(word.eq(2), c[2], c[3])));
}

at::Tensor drop_elements(const at::Tensor& x, double keep, const at::Tensor& seed, int64_t stream) {
  check_arguments(keep > 0 && keep <= 1, "'keep' is ", keep, ", allowed is a fraction above 0, at most 1");
  const double threshold = std::min(keep * 4294967296.0, 4294967295.0);
  const at::Tensor numbers = draw_numbers(x.numel(), seed.reshape({}), stream, x.device()).view(x.sizes());
  const at::Tensor kept = numbers.lt(static_cast<int64_t>(threshold)).to(at::kFloat);
  return x.to(at::kFloat).mul(kept.mul(1 / static_cast<float>(keep))).to(x.scalar_type());
}

}  // namespace

std::vector<OpRow> list_random_ops() {
  return {
      // seed: one i64. Element i of x stays, times 1 / keep, where number i of the stream is below keep.
      {"dropout(Tensor x, float keep, Tensor seed, int stream) -> Tensor", wrap_kernel(drop_elements)},
  };
}

}  // namespace lissome
