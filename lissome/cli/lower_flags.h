// The flags of every command that lowers: how long kernels are tried, which are forced, and what the file holds.
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

// Throws usage for another effort, an entry without "=", and kernels that do not exist.
Effort read_effort(const LowerFlags& lower);
std::vector<ForcedKernel> read_forced(const LowerFlags& lower);

// --keep-original of the commands that write a finished model.
void add_contents_flag(Flags& flags, bool& keep_original);
FileContents read_contents(bool keep_original);

// What was asked for and not done: kernels that were forced and refused the node, or failed when they were tried.
std::vector<std::string> list_lowering_notes(const Plan& plan, const LowerFlags& lower);

}  // namespace lissome
