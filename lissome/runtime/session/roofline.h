// The least time that a machine needs for a step, by the roofline model (Williams et al., 2009).
#pragma once

#include <cstdint>
#include <string_view>

#include "lissome/runtime/session/peaks.h"
#include "lissome/runtime/session/reference.h"

namespace lissome {

struct StepLimit {
  double seconds = 0;     // of any kernel; 0 where it is unknown: of libtorch's steps
  std::string_view what;  // "compute", "memory", or "overhead" where the work is shorter than a barrier
};

// `kernel` to `multiplied` as of StepTiming. `read_rate`: bytes a second, of choose_read_rate().
StepLimit find_step_limit(std::string_view kernel, int64_t bytes, double products, Dtype multiplied,
                          const MachinePeaks& peaks, double read_rate);
// Of the smallest memory that holds so many bytes.
double choose_read_rate(const MachinePeaks& peaks, int64_t working_set, const CacheSizes& caches);

}  // namespace lissome
