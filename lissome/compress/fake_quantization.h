// Fake quantization in a program: floats that were rounded to the 256 numbers of a scale. What quantizes such a program
// takes the scales as they are.
#pragma once

#include <map>

#include "lissome/compress.h"

namespace lissome {

// Takes the nodes out that round f32 activations to 256 numbers with constant scales (fake_quantize_per_tensor_affine,
// its learnable form, and dequantize(quantize(x)) of quantized exports), and returns the ranges by the value that they
// read. Where a value is rounded to two ranges, only those of the first go.
std::map<ValueId, ActivationRange> take_fake_quantization(Program& program);

}  // namespace lissome
