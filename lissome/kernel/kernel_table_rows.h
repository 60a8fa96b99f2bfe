// Declarations of every kernel function, for the table and for the files that define them.
#pragma once

#include "lissome/kernel/conv_f32.h"
#include "lissome/kernel/linear_f32.h"
#include "lissome/kernel/linear_u8s8.h"

namespace lissome {

// Declares the versions of one kernel.
#define LISSOME_KERNEL(name, Call, isa) void name##_##isa(const Call& call, int part, int parts)

LISSOME_KERNEL(linear_f32, LinearF32Call, portable);
LISSOME_KERNEL(linear_f32, LinearF32Call, avx2);
LISSOME_KERNEL(linear_f32, LinearF32Call, avx512);

LISSOME_KERNEL(conv_f32, ConvF32Call, portable);
LISSOME_KERNEL(conv_f32, ConvF32Call, avx2);
LISSOME_KERNEL(conv_f32, ConvF32Call, avx512);

LISSOME_KERNEL(linear_u8s8, LinearU8S8Call, portable);
LISSOME_KERNEL(linear_u8s8, LinearU8S8Call, avx2);
LISSOME_KERNEL(linear_u8s8, LinearU8S8Call, avx512_vnni);

LISSOME_KERNEL(conv_u8s8, ConvU8S8Call, portable);
LISSOME_KERNEL(conv_u8s8, ConvU8S8Call, avx2);
LISSOME_KERNEL(conv_u8s8, ConvU8S8Call, avx512_vnni);

LISSOME_KERNEL(quantize_rows, QuantizeRowsCall, portable);
LISSOME_KERNEL(quantize_rows, QuantizeRowsCall, avx2);
LISSOME_KERNEL(quantize_rows, QuantizeRowsCall, avx512_vnni);

#undef LISSOME_KERNEL

}  // namespace lissome
