// Which steps share a stage, whole and cut.
#include "lissome/runtime/session/run/stage_list.h"

#include <doctest/doctest.h>

using namespace lissome;

namespace {

std::vector<BoundStep> make_bound_steps(std::initializer_list<int> parts) {
  std::vector<BoundStep> steps(parts.size());
  for (size_t i = 0; i < steps.size(); ++i) steps[i].parts = parts.begin()[i];
  return steps;
}

// First and end step of each stage.
std::vector<std::pair<int, int>> list_stages(const Stages& stages) {
  std::vector<std::pair<int, int>> listed;
  for (int i = 0; i < static_cast<int>(stages.parts.size()); ++i)
    listed.emplace_back(stages.first_step(i), stages.end_step(i));
  return listed;
}

using Listed = std::vector<std::pair<int, int>>;

}  // namespace

TEST_CASE("steps of one part join in a stage, each shared step has its own") {
  const StageList list = StageList::join(make_bound_steps({1, 1, 4, 1, 1, 1, 2}));
  const Stages all = list.cut(0, 7);
  CHECK(std::vector<int>(all.parts.begin(), all.parts.end()) == std::vector<int>{1, 4, 1, 2});
  CHECK(list_stages(all) == Listed{{0, 2}, {2, 3}, {3, 6}, {6, 7}});
}

TEST_CASE("stages are cut where a run is") {
  const StageList list = StageList::join(make_bound_steps({1, 1, 4, 1, 1, 1, 2}));
  CHECK(list_stages(list.cut(1, 4)) == Listed{{1, 2}, {2, 3}, {3, 4}});
  CHECK(list_stages(list.cut(4, 5)) == Listed{{4, 5}});
  CHECK(list_stages(list.cut(5, 7)) == Listed{{5, 6}, {6, 7}});
  CHECK(list_stages(list.cut(2, 3)) == Listed{{2, 3}});
  CHECK(list.cut(2, 3).parts[0] == 4);
}

TEST_CASE("steps that are timed stand apart") {
  const StageList list = StageList::separate(make_bound_steps({1, 1, 4}));
  CHECK(list_stages(list.cut(0, 3)) == Listed{{0, 1}, {1, 2}, {2, 3}});
  CHECK(list.cut(1, 3).parts[1] == 4);
}
