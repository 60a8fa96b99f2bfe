// What the kernel's control groups grant, read from files under a root: "" on a machine, a folder of made-up files in
// tests. Both generations (cgroup v1 and v2) and every parent group count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lissome {

// Processors as a fraction (1.5 = one and a half), nothing when there is no quota.
std::optional<double> read_processor_quota(const std::string& root);
// Bytes, nothing when there is no limit.
std::optional<int64_t> read_memory_limit(const std::string& root);

}  // namespace lissome
