// What only a fresh process can tell of a model: time to load, time of the first call, peak of the resident set.
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

// Runs this program again on the model, with these flags, and reads what it prints. Nothing when this program is
// interrupted, which ends the other one. Throws what the model's own error was.
std::optional<Probe> probe_model(const std::string& model, const CallFlags& call, const SessionFlags& asked);

// The other side: `lissome bench --probe MODEL`.
Json run_probe(const std::string& model, const CallFlags& call, const SessionFlags& asked);

}  // namespace lissome
