// Reading patterns against the flow: from a value to the node that makes it, trying both orders of commutative ops.
#pragma once

#include <initializer_list>
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

// A product with a number, or division by one (number is then its inverse). The result must have the value's type: no
// promotion, no broadcasting. So too below.
std::optional<ScaledValue> match_scale(Rewriter& rewriter, const Argument& argument);
// A sum with a number (alpha 1), or a difference.
std::optional<ScaledValue> match_offset(Rewriter& rewriter, const Argument& argument);
// The two factors of mul.Tensor, none of them a number.
std::optional<std::pair<ValueId, ValueId>> match_product(Rewriter& rewriter, const Argument& argument);
// The two terms of add.Tensor with alpha 1.
std::optional<std::pair<ValueId, ValueId>> match_sum(Rewriter& rewriter, const Argument& argument);
// Both stand for the same value once replaced uses are looked through.
bool same_value(const Rewriter& rewriter, ValueId left, ValueId right);
// The number by which `value` is a multiple of `base`: value = base * 2 * 0.5 ...; 1 when they are the same.
std::optional<double> match_multiple(Rewriter& rewriter, ValueId value, ValueId base);
// Strips factors that are numbers: x * 2 * 0.5 is (x, 1).
ScaledValue strip_scales(Rewriter& rewriter, ValueId value);
// alpha of an addition or subtraction is 1.
bool has_unit_alpha(const Node& node);
// Between the leaves of a pattern and its last node: no value there is read from outside, so all of it goes when the
// last node is replaced.
bool is_closed(Rewriter& rewriter, const Node& last, std::initializer_list<ValueId> leaves);
bool is_near(double number, double expected);  // within 1e-6 relative: constants are typed by hand

}  // namespace lissome
