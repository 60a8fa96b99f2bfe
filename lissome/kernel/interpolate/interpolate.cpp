// The portable form.
#include "lissome/kernel/interpolate/interpolate.h"

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/interpolate/interpolate_place.h"
#include "lissome/kernel/interpolate/kernel_versions.h"
#include "lissome/kernel/isa/portable_output.h"

namespace lissome {

namespace {

template <typename T>
void interpolate_all(const InterpolateCallOf<T>& call, int part, int parts) {
  const Range rows = split_evenly(call.batch * call.out_height, part, parts);
  for (int64_t at = rows.begin; at < rows.end; ++at) {
    const T* image = call.x + at / call.out_height * call.height * call.width * call.channels;
    const InterpolatePlace row = find_place(call, at % call.out_height, call.height, call.scale_height);
    for (int64_t ow = 0; ow < call.out_width; ++ow) {
      const InterpolatePlace column = find_place(call, ow, call.width, call.scale_width);
      for (int64_t c = 0; c < call.channels; ++c) {
        const auto read = [&](int64_t h, int64_t w) {
          return static_cast<double>(widen_portable(image[(h * call.width + w) * call.channels + c]));
        };
        double value = read(row.first, column.first);
        if (call.bilinear) {
          const double right = column.share, down = row.share;
          const double above = (1 - right) * value + right * read(row.first, column.second);
          const double below = (1 - right) * read(row.second, column.first) + right * read(row.second, column.second);
          value = (1 - down) * above + down * below;
        }
        narrow_portable(value, call.y[(at * call.out_width + ow) * call.channels + c]);
      }
    }
  }
}

}  // namespace

void interpolate_portable(const InterpolateCall& call, int part, int parts) { interpolate_all(call, part, parts); }
void interpolate_bf16_portable(const InterpolateBf16Call& call, int part, int parts) {
  interpolate_all(call, part, parts);
}

}  // namespace lissome
