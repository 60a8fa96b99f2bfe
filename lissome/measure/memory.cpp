#include "lissome/measure/memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "lissome/base.h"

namespace lissome {

void MemoryCounter::take(int64_t bytes, std::string_view what) {
  if (!fits(bytes))
    throw_error(ErrorKind::over_budget, what, " of ", format_bytes(bytes), " does not fit: ", format_bytes(live()),
                " are taken of ", format_bytes(limit()));
  add(bytes);
}

MemoryCounter& allocator_memory() {
  static MemoryCounter counter;
  return counter;
}

MemoryProbe::MemoryProbe() : start_(allocator_memory().live()), peak_before_(allocator_memory().peak()) {
  allocator_memory().reset_peak();
}

// The probe around this one hears of its own peak.
MemoryProbe::~MemoryProbe() { allocator_memory().raise_peak(peak_before_); }

MemoryUse MemoryProbe::finish() { return {allocator_memory().peak() - start_, allocator_memory().live() - start_}; }

ResidentMemory read_resident_memory() {
  ResidentMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const auto read_kilobytes = [&](const char* key, int64_t& bytes) {
      const std::string prefix = key;
      if (line.compare(0, prefix.size(), prefix) == 0)
        bytes = std::strtoll(line.c_str() + prefix.size(), nullptr, 10) * 1024;
    };
    read_kilobytes("VmRSS:", memory.now);
    read_kilobytes("VmHWM:", memory.peak);
  }
  return memory;
}

bool reset_resident_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  file.flush();
  return file.good();
}

}  // namespace lissome
