// Declarations of every kernel function, for the table and for the files that define them.
#pragma once

#include "lissome/kernel/linear_f32.h"

namespace lissome {

void linear_f32_portable(const LinearF32Call& call, int part, int parts);
void linear_f32_avx2(const LinearF32Call& call, int part, int parts);
void linear_f32_avx512(const LinearF32Call& call, int part, int parts);

}  // namespace lissome
