// Measures how fast bytes move on this machine, to predict the time of plans that keep activations in bf16 or in a
// file.
#pragma once

#include <cstdint>
#include <string>

namespace lissome {

// Bytes per second that a copy in memory reads and writes.
double measure_copy_rate();

// Bytes per second that a file in a folder takes and gives back.
struct FolderRates {
  double cache = 0;  // to the system's page cache and back: the thread computes nothing meanwhile
  double disk = 0;   // to the disk and back, beside the computation

  // Predicts the seconds of a step that computes for `seconds` and moves `bytes`.
  double predict(double seconds, int64_t bytes) const;
};

// Writes and reads 32 MiB. Throws the errors of UnnamedFile.
FolderRates measure_folder(const std::string& folder);

}  // namespace lissome
