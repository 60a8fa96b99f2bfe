// Reading patterns against the flow: from a value to the node that makes it, trying both orders of commutative ops.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "lissome/pass/rewrite.h"

namespace lissome {

// `x op c` or `c op x` for a commutative op with a number c: the value side and the number.
struct ScaledValue {
  ValueId value = ValueId::none;
  double number = 0;
};

// mul.Tensor / mul.Scalar by a number, or division by one (number is then its inverse).
std::optional<ScaledValue> match_scale(Rewriter& rewriter, const Argument& argument);
// add.Tensor / add.Scalar of a number (alpha 1), or subtraction of one.
std::optional<ScaledValue> match_offset(Rewriter& rewriter, const Argument& argument);
// The two factors of mul.Tensor, none of them a number.
std::optional<std::pair<ValueId, ValueId>> match_product(Rewriter& rewriter, const Argument& argument);
// The two terms of add.Tensor with alpha 1.
std::optional<std::pair<ValueId, ValueId>> match_sum(Rewriter& rewriter, const Argument& argument);
// Both stand for the same value once replaced uses are looked through.
bool same_value(const Rewriter& rewriter, ValueId left, ValueId right);
bool is_near(double number, double expected);  // within 1e-6 relative: constants are typed by hand

}  // namespace lissome
