// What fuse_layer_norm and fuse_rms_norm both read: means over trailing dimensions, roots, and the constants that
// follow.
#pragma once

#include "lissome/pass/match.h"

namespace lissome {

// How many trailing dimensions a reduction of `input` with keepdim covers; 0 when it is something else.
int64_t count_trailing(Rewriter& rewriter, const Argument& dims, const Argument& keep, ValueId input);

// mean(x, trailing dimensions, keepdim) of x: the count of dimensions, 0 when `value` is something else.
int64_t match_mean(Rewriter& rewriter, ValueId value, ValueId x);

// x * x or x ** 2: x.
std::optional<ValueId> match_square(Rewriter& rewriter, ValueId value);

// numerator / sqrt(value + eps) or numerator * rsqrt(value + eps).
struct RootQuotient {
  ValueId numerator = ValueId::none;
  ValueId value = ValueId::none;
  double epsilon = 0;
};
// Each way in which `node` may be read so.
std::vector<RootQuotient> match_root_quotient(Rewriter& rewriter, const Node& node);

// A numerator as a value, and a constant of its dtype that multiplies it: weight * (x - mean). The first way to read it
// is without one.
struct Weighted {
  ValueId value = ValueId::none;
  Argument weight;
};
std::vector<Weighted> match_weighted(Rewriter& rewriter, ValueId numerator);
// There is no weight, or it has exactly the normalized shape.
bool fits_shape(Rewriter& rewriter, const Argument& weight, const ArgumentList& shape);

// The last `count` sizes of a value as a normalized shape; nothing when one is not a number.
std::optional<ArgumentList> find_normalized_shape(Rewriter& rewriter, ValueId value, int64_t count);

// `node` is norm * constant or norm + constant, in either order, where `norm` is made by `op` for this node alone and
// the constant has its dtype and exactly the normalized shape.
struct Affine {
  Node norm;
  Argument constant;
};
std::optional<Affine> match_affine(Rewriter& rewriter, const Node& node, std::string_view op);

}  // namespace lissome
