// The f32 convolution for AVX2 with FMA.
#include "lissome/kernel/vector_avx2.h"

namespace lissome {
namespace {
constexpr int kTileRows = 6;
constexpr int kTileVectors = 2;
}
}  // namespace lissome

#include "lissome/kernel/conv_f32_body.h"
#include "lissome/kernel/kernel_table_rows.h"

namespace lissome {
void conv_f32_avx2(const ConvF32Call& call, int part, int parts) { run_conv_f32(call, part, parts); }
}  // namespace lissome
