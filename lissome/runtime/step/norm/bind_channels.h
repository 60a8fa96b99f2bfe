// Functions that the binders of steps over rows of channels share.
#pragma once

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_binder.h"

namespace lissome {

struct ChannelRows {
  int64_t rows, channels;
};

// Counts the rows and channels of x [batch, channels, ...].
inline ChannelRows read_channel_rows(const StepBinder& binder, const PlacedValue& x) {
  binder.require(x.sizes.size() >= 2 && x.sizes[1] > 0 && x.elements() > 0, "x has no rows or no channels");
  return {x.elements() / x.sizes[1], x.sizes[1]};
}

template <typename Call>
void point_channels(StepBinder& binder, const Operand& vector, int64_t channels, const float* Call::* member) {
  binder.require_sizes(binder.value(vector), {channels});
  binder.point(member, vector);
}
template <typename Call>
void point_channels(StepBinder& binder, const OptionalOperand& vector, int64_t channels, const float* Call::* member) {
  if (!vector) return;
  binder.require_sizes(binder.value(vector), {channels});
  binder.point(member, vector);
}
template <typename Call>
void point_channels(StepBinder& binder, const Result& vector, int64_t channels, float* Call::* member) {
  binder.require_sizes(binder.value(vector), {channels});
  binder.point(member, vector);
}

// Points to the result of channel_sums.
template <typename Call>
void point_channel_sums(StepBinder& binder, const Operand& sums, int64_t channels) {
  binder.require_sizes(binder.value(sums), {kChannelBlocks, 2, channels});
  binder.point(static_cast<const double * Call::*>(&Call::sums), sums);
}

}  // namespace lissome
