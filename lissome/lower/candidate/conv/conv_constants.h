// Constants that several candidates for convolutions read, each kept once.
#pragma once

#include <string>

#include "lissome/kernel.h"
#include "lissome/lower/plan/plan_builder.h"

namespace lissome {

// So many zeros: where a tile at the border of x reads.
PlanValueId pack_zeros(PlanBuilder& builder, Dtype dtype, int64_t channels);
// The weight of a depthwise convolution, f32 or bf16, or one of small groups in f32, as pack_depthwise() lays it: in
// f32, since sums are too.
PlanValueId pack_taps(PlanBuilder& builder, const Node& node);
// The weight of a convolution of small groups in bf16, as pack_grouped_bf16() lays it.
PlanValueId pack_group_pairs(PlanBuilder& builder, const Node& node);
// What sets packings of a transposed convolution's weight apart: which taps meet depends on where the phases begin.
std::string name_phases(const Window& window);

}  // namespace lissome
