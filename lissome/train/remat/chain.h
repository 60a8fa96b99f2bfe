// Optimal recomputation of a chain of stages: Rotor's dynamic program (Beaumont, Eyraud-Dubois, Herrmann, Joly and
// Shilova 2019, arXiv 1911.13214), with several ways of running each stage, as Rockmate has them (Zhao et al. 2023).
#pragma once

#include <cstdint>
#include <vector>

namespace lissome {

// One way of running a stage so that its backward pass can follow. The backward pass spends `extra` seconds on
// recomputing what was not saved.
struct StageOption {
  double extra = 0;
  int64_t saved = 0;          // bytes that stay from forward to backward, including the stage's outputs
  int64_t forward_peak = 0;   // most bytes of the stage while it runs forward, saved bytes included
  int64_t backward_peak = 0;  // most bytes during its backward pass, including gradients that enter and leave
};

struct ChainStage {
  double forward = 0, backward = 0;  // seconds
  int64_t unsaved_peak = 0;          // most bytes while it runs forward and saves its outputs only
  std::vector<StageOption> options;  // at least one
};

struct Chain {
  std::vector<ChainStage> stages;
  // crossing[i][j], i < j: bytes computed in the stages i to j - 1 that stage j or a later one reads. crossing[i][i] is
  // 0.
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

// Finds the fastest schedule among those whose stored values stay until they are used. Memory is divided into `slots`
// and sizes are rounded up. Work grows with stages^3 * slots; 60 stages take some milliseconds.
ChainPlan plan_chain(const Chain& chain, int64_t memory, int slots = 500);

}  // namespace lissome
