// int8 linear, convolution and quantization of rows for AVX2.
#include "lissome/kernel/vector_int8_avx2.h"

namespace lissome {
namespace {
constexpr int kTileRows = 4;
constexpr int kTileVectors = 2;
}  // namespace
}  // namespace lissome

#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/linear_u8s8_body.h"

namespace lissome {
void linear_u8s8_avx2(const LinearU8S8Call& call, int part, int parts) { run_linear_u8s8(call, part, parts); }
void conv_u8s8_avx2(const ConvU8S8Call& call, int part, int parts) { run_conv_u8s8(call, part, parts); }
void quantize_rows_avx2(const QuantizeRowsCall& call, int part, int parts) { run_quantize_rows(call, part, parts); }
}  // namespace lissome
