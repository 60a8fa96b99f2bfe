// How a user asks for recomputation: the words of --recompute.
#pragma once

#include <string>
#include <variant>

namespace lissome {

struct KeepAll {};
// Keeps of the forward pass only the inputs of every `modules`-th module of the outermost list.
struct RecomputeEvery {
  int modules = 1;
};
// Recomputes values inside modules that match this shell-style pattern. Outputs of these modules are kept.
struct RecomputeModules {
  std::string pattern;
};
// Recomputes as little as the budget allows.
struct RecomputeToFit {
  double share = 1;  // fraction of the budget that may be filled before anything is recomputed, 0 to 1
};
using Recompute = std::variant<KeepAll, RecomputeEvery, RecomputeModules, RecomputeToFit>;

// "none", "every:2", "modules:blocks.*", "auto", "adaptive:0.8". Throws usage for other words.
Recompute parse_recompute(const std::string& text);

}  // namespace lissome
