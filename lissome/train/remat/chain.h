// Optimal recomputation of a chain of stages: Rotor's dynamic program (Beaumont, Eyraud-Dubois, Herrmann, Joly and
// Shilova 2019, arXiv 1911.13214), with several ways of running each stage, as Rockmate has them (Zhao et al. 2023).
#pragma once

#include <cstdint>
#include <vector>

namespace lissome {

// One way of running a stage so that its backward pass can follow. `extra` seconds are spent in the backward pass on
// what was not saved.
struct StageOption {
  double extra = 0;
  int64_t saved = 0;          // bytes that stay from forward to backward, what leaves the stage forward included
  int64_t forward_peak = 0;   // most bytes of its own while it runs forward, the saved ones included
  int64_t backward_peak = 0;  // the same for its backward pass, gradients that enter and leave included
};

struct ChainStage {
  double forward = 0, backward = 0;  // seconds
  int64_t unsaved_peak = 0;          // bytes of its own while it runs forward and saves nothing but what leaves it
  std::vector<StageOption> options;  // at least one
};

struct Chain {
  std::vector<ChainStage> stages;
  // crossing[i][j], i < j: bytes made in the stages i to j - 1 that enter stage j or a later one. crossing[i][i] is 0.
  std::vector<std::vector<int64_t>> crossing;
};

struct ChainStep {
  enum class Kind : uint8_t { forward_unsaved, forward_saved, backward };
  Kind kind = Kind::forward_unsaved;
  int stage = 0, option = 0;
};

struct ChainPlan {
  std::vector<ChainStep> steps;  // empty when nothing fits
  double seconds = 0;
};

// The least time among schedules whose stored values stay until they are used, with memory cut into `slots` and sizes
// rounded up. Work grows with stages^3 * slots: 60 stages take some milliseconds.
ChainPlan plan_chain(const Chain& chain, int64_t memory, int slots = 500);

}  // namespace lissome
