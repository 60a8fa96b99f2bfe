// What this process may use of the machine: instruction sets (with a mask for testing lesser paths) and threads.
#pragma once

#include <cstdint>
#include <string>

namespace lissome {

// Ordered subsets that kernels are written for. A kernel asks has(); nothing else reads cpuid.
enum class Feature : uint8_t { avx2, fma, f16c, avx512, avx512_vnni, avx512_bf16, amx_bf16, amx_int8 };

// True when processor and operating system support the feature and it is not masked (LISSOME_ISA or mask_features).
// `avx512` means F, BW, DQ and VL together. AMX tiles are requested from the kernel on first use. Throws usage when
// LISSOME_ISA holds an unknown level.
bool has(Feature feature);
// Features above this level are denied, for tests and `--isa`: "none", "avx2", "avx512", "vnni", "bf16", "amx" (all).
// Throws usage for another word.
void mask_features(const std::string& highest);
std::string describe_features();  // "avx2 fma f16c avx512 avx512_vnni ...", "none" when there is nothing

bool is_intel();               // for what was measured to differ between makers with the same features
std::string processor_name();  // from /proc/cpuinfo
// Processors this process may really use at once: the smaller of the affinity mask and the cgroup quota (rounded up),
// at least 1.
int usable_threads();
// The cores that these are threads of, at most usable_threads(). Two threads of one core share its multipliers, so that
// this many threads is where everything starts; `optimize` measures whether more or fewer are faster.
int usable_cores();
// The machine's memory, or the cgroup's limit where that is smaller.
int64_t total_memory_bytes();

}  // namespace lissome
