// Explains for each node its kernel, its time and the limit of the machine.
#include <algorithm>
#include <cmath>
#include <map>

#include "lissome/cli/profile.h"

namespace lissome {
namespace {

struct Limit {
  double seconds = 0;  // the least time of any kernel; 0 if unknown
  const char* what = "";
};

// The roofline (Williams et al. 2009): the time of products at the peak rate, or of bytes at the rate of the smallest
// memory that holds the whole model.
Limit find_limit(const NodeTime& node, const MachinePeaks& peaks, double read_rate) {
  if (node.kernel == "reference" || node.kernel == "session") return {};
  // Without bf16 products, bf16 is widened and multiplied as f32.
  const double products_rate = node.multiplied == Dtype::u8     ? peaks.multiply_u8s8
                               : node.multiplied == Dtype::bf16 ? std::max(peaks.multiply_bf16, peaks.multiply_f32)
                                                                : peaks.multiply_f32;
  const double compute = products_rate > 0 ? node.products / products_rate : 0;
  const double memory = read_rate > 0 ? static_cast<double>(node.bytes) / read_rate : 0;
  const double least = std::max(compute, memory);
  if (least <= 0) return {};
  // Work that is shorter than a barrier is bound by the barrier.
  if (least < peaks.barrier) return {least, "overhead"};
  return {least, compute >= memory ? "compute" : "memory"};
}

double choose_read_rate(const MachinePeaks& peaks, int64_t working_set, const CacheSizes& caches) {
  if (peaks.read_l2 > 0 && working_set <= caches.l2 * peaks.threads) return peaks.read_l2;
  if (peaks.read_l3 > 0 && working_set <= caches.l3) return peaks.read_l3;
  return peaks.read_memory;
}

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

}  // namespace

Table explain_nodes(const Plan& plan, const Profile& profile, const MachinePeaks& peaks, int64_t working_set) {
  std::map<std::string, const PlanChoice*> choices;
  for (const PlanChoice& choice : plan.choices) choices[choice.node] = &choice;
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
  std::string last;  // a node is explained once, with the first of its steps
  for (const NodeTime& node : profile.nodes) {
    const Limit limit = find_limit(node, peaks, read_rate);
    const auto choice = choices.find(node.origin.node);
    const bool known = choice != choices.end() && node.origin.node != last;
    last = node.origin.node;
    table.rows.push_back({node.origin.node, node.origin.op, node.kernel, node.isa, static_cast<double>(node.parts),
                          node.typical, limit.seconds > 0 ? limit.seconds / node.typical : std::nan(""), limit.what,
                          known ? choice->second->reason : "", known ? describe_others(*choice->second) : ""});
  }
  return table;
}

}  // namespace lissome
