// The portable form: sums in double.
#include "lissome/kernel/gemm/matmul_f32.h"

#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/matmul_places.h"
#include "lissome/kernel/isa/portable_output.h"

namespace lissome {

int64_t matmul_f32_scratch(int64_t inner) { return kLinearPanel * inner; }

void matmul_f32_portable(const MatmulF32Call& call, int part, int parts) {
  for_each_matmul_panel(call, part, parts, [&](const MatmulPlace& place) {
    for (int64_t m = 0; m < place.rows; ++m) {
      for (int64_t n = 0; n < place.outputs; ++n) {
        double sum = place.output.bias ? place.output.bias[n] : 0;
        if (place.start) sum += place.start[m * call.y_stride + n];
        for (int64_t k = 0; k < call.inner; ++k) {
          sum += static_cast<double>(place.a[m * call.a_row_stride + k * call.a_inner_stride]) *
                 static_cast<double>(place.b[k * call.b_inner_stride + n * call.b_output_stride]);
        }
        store_portable(place.output, m, n, sum);
      }
    }
  });
}

}  // namespace lissome
