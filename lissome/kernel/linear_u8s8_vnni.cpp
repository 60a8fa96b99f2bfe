// int8 linear, convolution and quantization of rows for AVX-512 with VNNI.
#include "lissome/kernel/vector_int8_vnni.h"

namespace lissome {
namespace {
constexpr int kTileRows = 6;
constexpr int kTileVectors = 4;
}  // namespace
}  // namespace lissome

#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/linear_u8s8_body.h"

namespace lissome {
void linear_u8s8_avx512_vnni(const LinearU8S8Call& call, int part, int parts) { run_linear_u8s8(call, part, parts); }
void conv_u8s8_avx512_vnni(const ConvU8S8Call& call, int part, int parts) { run_conv_u8s8(call, part, parts); }
void quantize_rows_avx512_vnni(const QuantizeRowsCall& call, int part, int parts) { run_quantize_rows(call, part, parts); }
}  // namespace lissome
