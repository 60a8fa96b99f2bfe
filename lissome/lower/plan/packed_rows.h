// A matrix that is both an embedding's table and a linear's weight (tied weights) is held once: as the linear packs it.
#pragma once

#include <span>

#include "lissome/runtime.h"

namespace lissome {

// `value` of a plan holds `weight`, a matrix dense in row order, as linear_f32 or linear_bf16 reads it.
struct PackedRows {
  Array weight;
  PlanValueId value = PlanValueId::none;
};

// Lets each "gather_rows" whose table has the same elements as a packed weight read the packed form, and takes tables
// that nothing reads then out of the plan.
void share_packed_rows(Plan& plan, std::span<const PackedRows> packed);

}  // namespace lissome
