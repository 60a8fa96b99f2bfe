// Attributes and values that steps of several families share, to be described inside of their describe().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/kernel/elementwise/activation.h"
#include "lissome/runtime/step/step_binder.h"
#include "lissome/runtime/step/step_fields.h"

namespace lissome {

inline constexpr int64_t kMostWindow = (1 << 20) - 1;  // of a kernel, a stride, a padding or a dilation
inline constexpr int64_t kMostGroups = int64_t{1} << 31;
inline constexpr int64_t kMostOutputs = kLargestBytes - 1;
inline constexpr double kAnyNumber = std::numeric_limits<double>::infinity();
inline constexpr int64_t kMostDimension = 63;

// Whether `word` names an activation that kernels know; see activation.h.
bool is_known_activation(std::string_view word);

// What follows the sums of a product: an activation with its two numbers.
struct ActivationFields {
  std::string activation = "none";
  double alpha = 0, beta = 0;

  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    fields.text("activation", self.activation, is_known_activation);
    fields.any_number("alpha", self.alpha);
    fields.any_number("beta", self.beta);
  }
  Epilogue epilogue() const;
};

// The window of a convolution or pooling: one number a spatial dimension each; empty: 1, and 0 of the padding.
struct WindowFields {
  std::vector<int64_t> kernel, stride, padding, dilation;
  std::vector<int64_t> padding_end;  // below and right; as `padding`, which is above and left, where it is empty
  int64_t groups = 1;

  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    describe_ungrouped(self, fields);
    fields.integer("groups", self.groups, 1, kMostGroups);
  }
  template <typename Self, typename Fields>
  static void describe_ungrouped(Self& self, Fields& fields) {
    describe_pool(self, fields);
    fields.integers("dilation", self.dilation, 1, kMostWindow, kFilled);
  }
  template <typename Self, typename Fields>
  static void describe_pool(Self& self, Fields& fields) {
    fields.integers("kernel", self.kernel, 1, kMostWindow, kFilled);
    fields.integers("stride", self.stride, 1, kMostWindow, kFilled);
    fields.integers("padding", self.padding, 0, kMostWindow, kFilled);
    fields.integers("padding_end", self.padding_end, 0, kMostWindow, kFilled);
  }
};

// How a product of u8 and s8 reads its input, its residual, and writes its result. `out_inverse` is 1 / scale of a u8
// result and 0 of others.
struct QuantizedFields {
  int64_t x_zero = 0;
  double out_inverse = 0;
  int64_t out_zero = 0;
  double residual_scale = 0;  // of a u8 residual
  int64_t residual_zero = 0;

  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    fields.integer("x_zero", self.x_zero, 0, 255);
    fields.number("out_inverse", self.out_inverse, 0, kAnyNumber);
    fields.integer("out_zero", self.out_zero, 0, 255);
  }
  template <typename Self, typename Fields>
  static void describe_residual(Self& self, Fields& fields) {
    fields.number("residual_scale", self.residual_scale, -kAnyNumber, kAnyNumber);
    fields.integer("residual_zero", self.residual_zero, 0, 255);
  }
};

// Of a step with an optional residual: none without it.
inline ResidualPlace residual_place(const OptionalOperand& residual, bool residual_last) {
  if (!residual) return ResidualPlace::none;
  return residual_last ? ResidualPlace::after_activation : ResidualPlace::before_activation;
}

}  // namespace lissome
