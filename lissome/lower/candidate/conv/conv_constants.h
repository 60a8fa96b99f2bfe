// Constants that several candidates for convolutions read, each kept once.
#pragma once

#include <string>

#include "lissome/kernel.h"
#include "lissome/lower/plan/plan_builder.h"

namespace lissome {

// So many zeros: where a tile at the border of x reads.
PlanValueId pack_zeros(PlanBuilder& builder, Dtype dtype, int64_t channels);
// The weight of a depthwise convolution or one of small groups, f32 or bf16, as pack_depthwise() lays it: in f32, since
// sums are too.
PlanValueId pack_taps(PlanBuilder& builder, const Node& node);
// What sets packings of a transposed convolution's weight apart: which taps meet depends on where the phases begin.
std::string name_phases(const Window& window);

}  // namespace lissome
