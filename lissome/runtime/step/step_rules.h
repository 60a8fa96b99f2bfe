// Rules of attributes that steps of many families share: the window of a convolution, what follows the sums. See step_schema.h.
#pragma once

#include <array>

#include "lissome/runtime/step/step_groups.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {

inline constexpr AttributeRule kPoolWindowRules[] = {
    integers_rule("kernel", 1, kMostWindow),
    integers_rule("stride", 1, kMostWindow),
    integers_rule("padding", 0, kMostWindow),
};
inline constexpr AttributeRule kDilationRules[] = {integers_rule("dilation", 1, kMostWindow)};
inline constexpr AttributeRule kGroupRules[] = {integer_rule("groups", 1, kMostGroups)};
// See read_epilogue().
inline constexpr AttributeRule kEpilogueRules[] = {
    text_rule("activation", is_epilogue_activation),
    any_number_rule("alpha"),
    any_number_rule("beta"),
};
inline constexpr AttributeRule kResidualRules[] = {flag_rule("residual_last")};
inline constexpr AttributeRule kAverageRules[] = {
    flag_rule("counts_padding"),
    integer_rule("divisor", INT64_MIN, INT64_MAX),
};
inline constexpr AttributeRule kOutputsRules[] = {integer_rule("outputs", 1, kLargestBytes - 1, true)};

template <size_t... Counts>
constexpr auto join_rules(const AttributeRule (&... groups)[Counts]) {
  std::array<AttributeRule, (Counts + ...)> joined{};
  size_t at = 0;
  const auto append = [&](std::span<const AttributeRule> rules) {
    for (const AttributeRule& rule : rules) joined[at++] = rule;
  };
  (append(groups), ...);
  return joined;
}

}  // namespace lissome
