// The bound steps of a plan as stages of a parallel region: which steps run one after another without a wait between.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "lissome/runtime/step/step_binder.h"

namespace lissome {

// The stages that steps [begin, end) run in. It points into a StageList.
struct Stages {
  std::span<const int> parts;  // of each stage
  std::span<const int> first;  // of each stage its first step, then the end of the last stage
  int begin = 0, end = 0;      // the first and the last stage may reach beyond these steps

  int first_step(int stage) const { return std::max(first[static_cast<size_t>(stage)], begin); }
  int end_step(int stage) const { return std::min(first[static_cast<size_t>(stage) + 1], end); }
};

class StageList {
 public:
  StageList() = default;
  // Steps in a row that no two threads share stand together in a stage of one part; any other has a stage of its own.
  static StageList join(std::span<const BoundStep> steps);
  // Each step has a stage of its own, so that it can be timed.
  static StageList separate(std::span<const BoundStep> steps);

  // begin < end. Allocates nothing.
  Stages cut(int begin, int end) const;

 private:
  StageList(std::span<const BoundStep> steps, bool joins);

  std::vector<int> parts_;     // by stage
  std::vector<int> first_;     // by stage, and the number of steps
  std::vector<int> stage_of_;  // by step
};

}  // namespace lissome
