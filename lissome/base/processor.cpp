// Instruction sets from cpuid and xgetbv, threads and memory from the kernel. Read once, then answered from memory.
#include "lissome/base/processor.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <mutex>
#include <vector>

#include "lissome/base/environment.h"
#include "lissome/base/error.h"
#include "lissome/base/processor_quota.h"
#include "lissome/base/processor_topology.h"
#include "lissome/base/text.h"

namespace lissome {
namespace {

using FeatureSet = uint32_t;

constexpr FeatureSet bit(Feature feature) { return FeatureSet{1} << static_cast<int>(feature); }

struct FeatureRow {
  Feature feature;
  std::string_view name;
  std::string_view level;  // the lowest mask that still allows it
};

// From the least to the most; a mask allows its own rows and all above them in this table.
constexpr FeatureRow kFeatures[] = {
    {Feature::avx2, "avx2", "avx2"},
    {Feature::fma, "fma", "avx2"},
    {Feature::f16c, "f16c", "avx2"},
    {Feature::avx512, "avx512", "avx512"},
    {Feature::avx512_vnni, "avx512_vnni", "vnni"},
    {Feature::avx512_bf16, "avx512_bf16", "bf16"},
    {Feature::amx_bf16, "amx_bf16", "amx"},
    {Feature::amx_int8, "amx_int8", "amx"},
};

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers read_cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  // False when the processor does not know the leaf: all bits stay 0.
  static_cast<void>(__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx));
  return r;
}

uint64_t read_enabled_states() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Linux grants the 8 KiB of tile registers on request only; the grant is for the whole process.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

FeatureSet detect_features() {
  const auto all = [](uint64_t value, uint64_t mask) { return (value & mask) == mask; };
  const Registers basic = read_cpuid(1, 0);
  constexpr uint32_t kXsave = 1u << 27;
  if (!all(basic.ecx, kXsave)) return 0;
  const uint64_t states = read_enabled_states();
  const Registers seven = read_cpuid(7, 0), seven_one = read_cpuid(7, 1);
  FeatureSet found = 0;
  const auto add = [&](bool present, Feature feature) { found |= present ? bit(feature) : 0; };
  constexpr uint64_t kYmm = 0x6, kZmm = 0xE6, kTiles = 0x60000;
  const bool ymm = all(states, kYmm), zmm = all(states, kZmm);
  add(ymm && all(seven.ebx, 1u << 5), Feature::avx2);
  add(ymm && all(basic.ecx, 1u << 12), Feature::fma);
  add(ymm && all(basic.ecx, 1u << 29), Feature::f16c);
  constexpr uint32_t kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;
  const bool avx512 = zmm && all(seven.ebx, kF | kDq | kBw | kVl);
  add(avx512, Feature::avx512);
  add(avx512 && all(seven.ecx, 1u << 11), Feature::avx512_vnni);
  add(avx512 && all(seven_one.eax, 1u << 5), Feature::avx512_bf16);
  constexpr uint32_t kAmxBf16 = 1u << 22, kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;
  if (avx512 && all(states, kTiles) && all(seven.edx, kAmxTile) && request_tiles()) {
    add(all(seven.edx, kAmxBf16), Feature::amx_bf16);
    add(all(seven.edx, kAmxInt8), Feature::amx_int8);
  }
  return found;
}

FeatureSet read_mask(std::string_view level, std::string_view source) {
  if (level == "none") return 0;
  FeatureSet allowed = 0;
  bool found = false;
  for (const FeatureRow& row : kFeatures) {
    if (found && row.level != level) break;
    found |= row.level == level;
    allowed |= bit(row.feature);
  }
  if (!found)
    throw_error(ErrorKind::usage, source, " is ", quote(level),
                "; none, avx2, avx512, vnni, bf16 and amx are allowed.");
  return allowed;
}

FeatureSet detected_features() {
  static const FeatureSet detected = detect_features();
  return detected;
}

// The processors that the affinity mask allows, by the kernel's numbers; empty where it does not tell.
std::vector<int> list_processors() {
  std::vector<int> processors;
  // The mask has one bit a processor; the kernel refuses a set that is too small for the machine.
  for (int capacity = CPU_SETSIZE; processors.empty() && capacity <= 1 << 20; capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(capacity));
    if (set == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    if (sched_getaffinity(0, size, set) == 0) {
      for (int i = 0; i < capacity; ++i)
        if (CPU_ISSET_S(static_cast<size_t>(i), size, set)) processors.push_back(i);
    }
    CPU_FREE(set);
  }
  return processors;
}

// What has() may answer; ~0 stands for "not read yet".
std::atomic<FeatureSet> usable_features{~FeatureSet{0}};

}  // namespace

bool has(Feature feature) {
  FeatureSet usable = usable_features.load(std::memory_order_relaxed);
  if (usable == ~FeatureSet{0}) {
    const auto level = read_environment("LISSOME_ISA");
    usable = detected_features() & (level ? read_mask(*level, "LISSOME_ISA") : ~FeatureSet{0});
    FeatureSet unread = ~FeatureSet{0};
    // A mask that was set meanwhile stays.
    if (!usable_features.compare_exchange_strong(unread, usable)) usable = unread;
  }
  return (usable & bit(feature)) != 0;
}

void mask_features(const std::string& highest) {
  usable_features.store(detected_features() & read_mask(highest, "the instruction set"));
}

std::string describe_features() {
  std::vector<std::string> names;
  for (const FeatureRow& row : kFeatures)
    if (has(row.feature)) names.emplace_back(row.name);
  return names.empty() ? "none" : join(names, " ");
}

bool is_intel() { return read_cpuid(0, 0).ebx == signature_INTEL_ebx; }

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "unknown processor";
}

int usable_threads() {
  const auto processors = static_cast<int>(list_processors().size());
  int threads = processors > 0 ? processors : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (const auto quota = read_processor_quota(""))
    threads = std::min(threads, static_cast<int>(std::ceil(std::min(*quota, 1e6))));
  return std::max(threads, 1);
}

int usable_cores() {
  const int cores = count_cores("", list_processors());
  return cores > 0 ? std::min(cores, usable_threads()) : usable_threads();
}

int64_t total_memory_bytes() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::min(machine, read_memory_limit("").value_or(machine));
}

}  // namespace lissome
