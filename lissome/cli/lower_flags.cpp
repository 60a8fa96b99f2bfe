#include "lissome/cli/lower_flags.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <set>

namespace lissome {

void add_lower_flags(Flags& flags, LowerFlags& lower) {
  flags.add("--effort", lower.effort,
            "Effort of choosing kernels: fast (without timing), normal (with timing) or max (with longer timing).");
  flags.add(
      "--kernel", lower.kernels,
      "PATTERN=NAME: the kernel for all nodes whose op or name matches, for example attention=flash, math or ours.");
}

Effort read_effort(const LowerFlags& lower) { return parse_effort(lower.effort); }

std::vector<ForcedKernel> read_forced(const LowerFlags& lower) {
  std::vector<ForcedKernel> forced;
  const std::vector<std::string> names = list_kernel_names();
  for (const std::string& entry : lower.kernels) {
    const size_t equals = entry.rfind('=');
    if (equals == 0 || equals == std::string::npos)
      throw_error(ErrorKind::usage, "--kernel must be PATTERN=NAME, for example attention=flash, not ", quote(entry));
    const std::string kernel = entry.substr(equals + 1);
    if (std::find(names.begin(), names.end(), kernel) == names.end()) {
      throw_error(ErrorKind::usage, "--kernel: there is no kernel ", quote(kernel), "\nKernels: ", join(names, ", "));
    }
    forced.push_back({entry.substr(0, equals), kernel});
  }
  return forced;
}

LowerOptions read_lowering(const LowerFlags& lower, int threads) {
  LowerOptions lowering;
  lowering.effort = read_effort(lower);
  lowering.forced = read_forced(lower);
  lowering.threads = threads;
  return lowering;
}

void add_contents_flag(Flags& flags, bool& keep_original) {
  flags.add("--keep-original", keep_original,
            "Also write the program and its own weights, so that the file can be optimized or prepared again.");
}

FileContents read_contents(bool keep_original) {
  return keep_original ? FileContents::plan_and_program : FileContents::plan;
}

std::vector<std::string> list_lowering_notes(const Plan& plan, const LowerFlags& lower) {
  std::set<std::string> notes;
  size_t taken = 0;
  for (const PlanChoice& choice : plan.choices) {
    taken += choice.reason == "forced" ? 1 : 0;
    if (choice.reason.find("was asked for") != std::string::npos)
      notes.insert("--kernel: %" + choice.node + " (" + choice.op + ") runs on " + choice.chosen + ": " +
                   choice.reason);
    for (const PlanCandidate& candidate : choice.candidates) {
      if (candidate.refused.starts_with("failed when tried"))
        notes.insert("the kernel " + candidate.name + " for " + choice.op + " is not used: it " + candidate.refused);
    }
  }
  if (!lower.kernels.empty() && taken == 0) notes.insert("--kernel: no node runs on a kernel that was asked for");
  return {notes.begin(), notes.end()};
}

}  // namespace lissome
