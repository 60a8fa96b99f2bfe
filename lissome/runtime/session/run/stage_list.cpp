// See stage_list.h.
#include "lissome/runtime/session/run/stage_list.h"

namespace lissome {

StageList::StageList(std::span<const BoundStep> steps, bool joins) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!joins || i == 0 || steps[i].parts != 1 || steps[i - 1].parts != 1) {
      parts_.push_back(steps[i].parts);
      first_.push_back(static_cast<int>(i));
    }
    stage_of_.push_back(static_cast<int>(parts_.size()) - 1);
  }
  first_.push_back(static_cast<int>(steps.size()));
}

StageList StageList::join(std::span<const BoundStep> steps) { return {steps, true}; }
StageList StageList::separate(std::span<const BoundStep> steps) { return {steps, false}; }

Stages StageList::cut(int begin, int end) const {
  const auto first = static_cast<size_t>(stage_of_[static_cast<size_t>(begin)]);
  const auto count = static_cast<size_t>(stage_of_[static_cast<size_t>(end - 1)]) - first + 1;
  return {std::span(parts_).subspan(first, count), std::span(first_).subspan(first, count + 1), begin, end};
}

}  // namespace lissome
