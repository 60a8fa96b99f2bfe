// Chooses kernels by timing whole plans. A kernel alone tells little: what it forces on its neighbours (another order
// of elements, a step through libtorch) costs as much as the work itself, so a change counts only when the whole plan
// gets faster by it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lissome/lower.h"

namespace lissome {

// Kernel by the name of the node's first result. A node without an entry, or whose kernel refuses it, takes the first
// that accepts.
using Preferences = std::map<std::string, std::string>;

// A node that several kernels accept.
struct OpenChoice {
  std::string node;
  std::string chosen;
  std::vector<std::string> accepted;
};

struct Lowered {
  Plan plan;
  std::vector<OpenChoice> open;
};

// Starts from the first that accept, tries one change after the other (all nodes at once to one kernel, then kind by
// kind of node, the most promising first; with Effort::max then node by node) and keeps those that make the plan faster
// beyond noise. Ends when nothing is left to try or the effort's time is up.
Plan choose_kernels(const Program& program, const LowerOptions& options,
                    const std::function<Lowered(const Preferences&)>& lower);

}  // namespace lissome
