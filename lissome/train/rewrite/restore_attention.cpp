// See restore_attention.h.
#include "lissome/train/rewrite/restore_attention.h"

#include <ATen/core/ivalue.h>

#include <array>

#include "lissome/pass.h"

namespace lissome {
namespace {

// The passes that bring attention into the form that fuse_attention reads.
constexpr std::array kNames = {"canonicalize",   "remove_satisfied_checks", "remove_identities",
                               "remove_copies",  "move_size_reads",         "simplify_arithmetic",
                               "restore_matmul", "merge_layout_chains",     "fuse_softmax"};
constexpr Pass kFuse = {"fuse_attention", fuse_differentiable_attention, "attention written out by hand"};

}  // namespace

int restore_attention(Program& program) {
  std::vector<Pass> passes;
  for (const char* name : kNames) passes.push_back(*find_pass(name));
  passes.push_back(kFuse);
  Program restored = program;
  int made = 0;
  for (const PassResult& result : run_passes(passes, restored, {})) {
    if (result.name == kFuse.name) made += result.rewrites;
  }
  if (made == 0) return 0;
  for (const Weight& weight : program.weights) {
    if (restored.find_weight(weight.name) == nullptr) restored.add_weight(weight.name, weight.tensor, weight.role);
  }
  program = std::move(restored);
  return made;
}

}  // namespace lissome
