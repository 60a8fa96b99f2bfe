// The registers that the bodies (*_body.h) are written in, for the instruction set of the file that includes this.
// Everything below lies in anonymous namespaces: versions for different instruction sets must never share code.
#pragma once

#include "lissome/kernel/isa/inline.h"

#ifdef __AVX512F__
#include "lissome/kernel/isa/vector_avx512.h"
#else
#include "lissome/kernel/isa/vector_avx2.h"
#endif
