// Measures in a fresh process: the time to load a model, the time of its first call, and the peak of the resident set.
#pragma once

#include <optional>
#include <string>

#include "lissome/base.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/session_flags.h"

namespace lissome {

struct Probe {
  double load_seconds = 0, first_call_seconds = 0;
  int64_t resident_peak = 0;   // bytes, VmHWM after the calls
  int64_t allocator_peak = 0;  // bytes that lissome's and libtorch's allocators held
};

// Runs this program on the model in a process of its own, with these flags, and reads its output. Empty if this program
// is interrupted, which also ends the other process. Throws the error of the model.
std::optional<Probe> probe_model(const std::string& model, const CallFlags& call, const SessionFlags& asked);

// Runs in that process: `lissome bench --probe MODEL`.
Json run_probe(const std::string& model, const CallFlags& call, const SessionFlags& asked);

}  // namespace lissome
