// How small functions of vector loops are declared.
#pragma once

#define LISSOME_INLINE inline __attribute__((always_inline))
