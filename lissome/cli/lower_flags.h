// The flags of every command that lowers: effort, forced kernels, and contents of the file.
#pragma once

#include <string>
#include <vector>

#include "lissome/cli/flags.h"
#include "lissome/lower.h"

namespace lissome {

struct LowerFlags {
  std::string effort;                // "fast", "normal", "max"
  std::vector<std::string> kernels;  // "attention=flash"
};
void add_lower_flags(Flags& flags, LowerFlags& lower);

// All throw usage: for an unknown effort, an entry without "=", and kernels that do not exist.
Effort read_effort(const LowerFlags& lower);
std::vector<ForcedKernel> read_forced(const LowerFlags& lower);
LowerOptions read_lowering(const LowerFlags& lower, int threads);

// Adds --keep-original, for commands that write a finished model.
void add_contents_flag(Flags& flags, bool& keep_original);
FileContents read_contents(bool keep_original);

// Notes on forced kernels that refused a node, and on kernels that failed when they were tried.
std::vector<std::string> list_lowering_notes(const Plan& plan, const LowerFlags& lower);

}  // namespace lissome
