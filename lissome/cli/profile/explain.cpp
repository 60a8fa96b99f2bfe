// Explains for each node its kernel, its time and the limit of the machine.
#include <algorithm>
#include <cmath>
#include <map>

#include "lissome/cli/profile/profile.h"

namespace lissome {
namespace {

// Lists timed kernels first, and groups kernels that were refused for the same reason.
std::string describe_others(const PlanChoice& choice) {
  std::vector<std::string> others, reasons;
  std::map<std::string, std::vector<std::string>> refused;
  for (const PlanCandidate& candidate : choice.candidates) {
    if (candidate.name == choice.chosen) continue;
    if (candidate.refused.empty()) {
      const double seconds = candidate.nanoseconds * 1e-9;
      others.push_back(candidate.name + (seconds > 0 ? " (" + format_duration(seconds) + " alone)" : ""));
      continue;
    }
    std::vector<std::string>& names = refused[candidate.refused];
    if (names.empty()) reasons.push_back(candidate.refused);
    names.push_back(candidate.name);
  }
  for (const std::string& reason : reasons) others.push_back("not " + join(refused[reason], ", ") + ": " + reason);
  return join(others, "; ");
}

// Whether a node multiplied faster than `peaks` allow. (Winograd's forms may: they need fewer products.)
bool exceeds_peaks(const Profile& profile, const MachinePeaks& peaks) {
  constexpr double kBeyond = 1.05;  // what clocks and rounding may make of a step at the limit
  return std::any_of(profile.nodes.begin(), profile.nodes.end(), [&](const NodeTime& node) {
    if (node.kernel.starts_with("winograd")) return false;
    const StepLimit limit = find_step_limit(node.kernel, 0, node.products, node.multiplied, peaks, 0);
    return limit.what == "compute" && limit.seconds > kBeyond * node.typical;
  });
}

}  // namespace

MachinePeaks find_peaks_of(const Profile& profile, int threads) {
  const MachinePeaks peaks = find_peaks(threads);
  return exceeds_peaks(profile, peaks) ? improve_peaks(peaks) : peaks;
}

Table explain_nodes(const Plan& plan, const Profile& profile, const MachinePeaks& peaks, int64_t working_set) {
  const double read_rate = choose_read_rate(peaks, working_set, cache_sizes());
  Table table{"Why",
              {{"node", ""},
               {"op", ""},
               {"kernel", ""},
               {"isa", ""},
               {"threads", ""},
               {"time", "s"},
               {"of limit", "%"},
               {"held back by", ""},
               {"chosen", ""},
               {"others", "", true}},
              {}};
  int last = -1;  // a choice is explained once, with the first of the steps that it led to
  for (const NodeTime& node : profile.nodes) {
    const StepLimit limit = find_step_limit(node.kernel, node.bytes, node.products, node.multiplied, peaks, read_rate);
    const PlanChoice* choice = nullptr;
    if (node.origin.choice >= 0 && node.origin.choice != last)
      choice = &plan.choices[static_cast<size_t>(node.origin.choice)];
    last = node.origin.choice;
    table.rows.push_back({node.origin.node, node.origin.op, node.kernel, node.isa, static_cast<double>(node.parts),
                          node.typical, limit.seconds > 0 ? limit.seconds / node.typical : std::nan(""),
                          std::string(limit.what), choice != nullptr ? choice->reason : "",
                          choice != nullptr ? describe_others(*choice) : ""});
  }
  return table;
}

}  // namespace lissome
