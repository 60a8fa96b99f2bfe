// The width of softmax, for the binders of softmax and of its gradient.
#pragma once

#include "lissome/runtime/step/step_binder.h"

namespace lissome {

// How many numbers they go over: the last dimension, or with `channels` those of images with channels last. All values
// must be alike.
inline int64_t read_softmax_width(const StepBinder& binder, bool channels,
                                  std::initializer_list<const PlacedValue*> values) {
  const Sizes& sizes = (*values.begin())->sizes;
  binder.require(!channels || sizes.size() == 4, "there are no images");
  for (const PlacedValue* value : values) {
    binder.require_sizes(*value, sizes);
    binder.require(value->is_dense(channels ? Format::channels_last : Format::row_major), "a value is not dense");
  }
  return channels ? sizes[1] : sizes.empty() ? 1 : sizes.back();
}

}  // namespace lissome
