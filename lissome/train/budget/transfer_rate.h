// How fast bytes move on this machine, measured: what plans that store activations in another form or place are told
// by.
#pragma once

#include <cstdint>
#include <string>

namespace lissome {

// Bytes that a copy reads and writes in a second.
double measure_copy_rate();

// Bytes a second, there and back, of a file in a folder.
struct FolderRates {
  double cache = 0;  // into the system's cache and out of it: a thread computes nothing meanwhile
  double disk = 0;   // to the disk and from it, which goes on beside

  // Of a step that takes `seconds` and moves so many bytes.
  double predict(double seconds, int64_t bytes) const;
};

// Writes and reads 32 MiB. Throws what UnnamedFile throws.
FolderRates measure_folder(const std::string& folder);

}  // namespace lissome
