// The portable form, in double.
#include "lissome/kernel/conv/col2im.h"

#include "lissome/kernel/conv/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {

void col2im_portable(const Col2ImCall& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t taps = w.kernel_height * w.kernel_width;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    for (int64_t c = 0; c < call.channels; ++c) {
      double sum = call.bias ? call.bias[c] : 0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t ih =
            find_source(oh, tap / w.kernel_width, w.stride_height, w.pad_height, w.dilation_height, w.height);
        const int64_t iw =
            find_source(ow, tap % w.kernel_width, w.stride_width, w.pad_width, w.dilation_width, w.width);
        if (ih < 0 || iw < 0) continue;
        sum += call.columns[(((n * w.height + ih) * w.width + iw) * taps + tap) * call.channels + c];
      }
      call.y[row * call.channels + c] = static_cast<float>(activate(call.epilogue, sum));
    }
  }
}

}  // namespace lissome
