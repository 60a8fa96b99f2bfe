// Inputs of bf16 kernel tests, and the judgement of a rounded result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "lissome/kernel/isa/convert_element.h"
#include "lissome/kernel/test_arrays.h"

namespace lissome {

inline std::vector<uint16_t> make_bf16(TestNumbers& numbers, int64_t count) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (uint16_t& value : values) value = narrow_bf16(numbers.real());
  return values;
}

// Whether `seen` is what some number within `tolerance` (see close_enough) of `exact` rounds to.
inline bool is_rounded(uint16_t seen, float exact, float tolerance) {
  const float value = widen_bf16(seen);
  if (std::isnan(value) || std::isnan(exact)) return std::isnan(value) && std::isnan(exact);
  const float slack = tolerance * std::fmax(1.0f, std::fabs(exact));
  if (std::isinf(exact) || std::isinf(slack)) return value == exact;
  return value >= widen_bf16(narrow_bf16(exact - slack)) && value <= widen_bf16(narrow_bf16(exact + slack));
}

// Scratch memory as kernels want it.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t bytes)
      : data_(static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes) + 64, std::align_val_t{64}))) {
    // What kernels read before they write it must not matter.
    std::fill_n(data_.get(), bytes + 64, std::byte{0xff});
  }
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace lissome
