// As vector.h, with sums of products of bytes.
#pragma once

#include "lissome/kernel/isa/inline.h"
#include "lissome/kernel/isa/vector_u8.h"

#ifdef __AVX512VNNI__
#include "lissome/kernel/isa/vector_int8_vnni.h"
#else
#include "lissome/kernel/isa/vector_int8_avx2.h"
#endif
