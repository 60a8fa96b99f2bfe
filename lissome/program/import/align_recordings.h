// Recordings of a module's runs laid side by side: which call of one is which of another, and which tensor. For
// convert_recording.cpp.
#pragma once

#include "lissome/program/record/record_runs.h"

namespace lissome {

struct AlignedRecordings {
  const ModuleRun* base = nullptr;  // the run with the most calls
  // By run, then by call of the base; null where that run did without it.
  std::vector<std::vector<const RecordedCall*>> calls;
  // By run, then by a tensor's number in the base: its number in that run; none when it is nowhere read or made.
  std::vector<std::vector<ValueId>> numbers;
};

// Throws unsupported where two runs call other ops or give an op other tensors.
AlignedRecordings align_recordings(const std::vector<ModuleRun>& runs);

}  // namespace lissome
