// As vector.h, with sums of products of bytes.
#pragma once

#ifdef __AVX512VNNI__
#include "lissome/kernel/vector_int8_vnni.h"
#else
#include "lissome/kernel/vector_int8_avx2.h"
#endif

#define LISSOME_INLINE inline __attribute__((always_inline))
