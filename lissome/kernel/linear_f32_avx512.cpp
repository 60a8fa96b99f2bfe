// AVX-512: tiles of 6 x 64, 24 of 32 registers hold sums.
#include "lissome/kernel/vector_avx512.h"

namespace lissome {
namespace {
constexpr int kTileRows = 6;
constexpr int kTileVectors = 4;
}
}  // namespace lissome

#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/linear_f32_body.h"

namespace lissome {
void linear_f32_avx512(const LinearF32Call& call, int part, int parts) { run_linear_f32(call, part, parts); }
}  // namespace lissome
