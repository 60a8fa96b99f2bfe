// What this machine can do at most: the figures that rooflines are drawn with. Measured, never looked up.
#pragma once

#include <cstdint>
#include <string>

#include "lissome/base.h"

namespace lissome {

struct MachinePeaks {
  int threads = 1;
  // Multiply-adds a second of all threads together; 0 where the processor has no such products.
  double multiply_f32 = 0, multiply_bf16 = 0, multiply_u8s8 = 0;
  // Bytes a second read by all threads together, each its own, out of the first level cache, the second, the third and
  // memory. A level that the processor does not report is 0.
  double read_l1 = 0, read_l2 = 0, read_l3 = 0, read_memory = 0;
  double barrier = 0;     // seconds of a stage that has an empty part for each thread; 0 for one thread
  double region = 0;      // seconds to hand work to the thread pool and get it back
  double page_fault = 0;  // seconds for the first touch of a 4 KiB page
};

// What the processor says of its caches, bytes: of one core, and shared by all. 0 where it does not say.
struct CacheSizes {
  int64_t l1 = 0, l2 = 0, l3 = 0;
};
CacheSizes cache_sizes();

// Takes about a second. The best of several short tries: what the machine can do, not what neighbours leave.
// `threads` from 1 to usable_threads().
MachinePeaks measure_peaks(int threads);

// The same, measured once per machine, version and thread count, and kept in a file below the user's cache folder
// (see docs/environment.md). A file that cannot be read or written costs a measurement, nothing else.
MachinePeaks find_peaks(int threads);

// `peaks` measured once more, the better of both in each field kept, in the file too: for when a step went beyond what
// `peaks` allow, because other work held the machine back when they were measured.
MachinePeaks improve_peaks(const MachinePeaks& peaks);

// One sentence on what int8 layers can win in time without VNNI, with the figures: hardly anything, or less than with
// it.
std::string explain_int8_without_vnni(const MachinePeaks& peaks);
// The same of this machine; empty where it has VNNI, which settles it, so that only others are measured.
std::string explain_int8_without_vnni();

Json to_json(const MachinePeaks& peaks);

}  // namespace lissome
