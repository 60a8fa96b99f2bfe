// Element-wise steps that scale and shift each channel of images, with or without ReLU behind, become channel_affine,
// which keeps a channel's two numbers in registers: the batch norms that no weight could take in. On plans behind
// fuse_elementwise_steps().
#pragma once

#include "lissome/runtime.h"

namespace lissome {

void convert_channel_maps(Plan& plan);

}  // namespace lissome
