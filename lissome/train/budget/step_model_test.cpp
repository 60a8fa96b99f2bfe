// What the judge of schedules counts, on steps small enough to count by hand.
#include "lissome/train/budget/step_model.h"

#include <doctest/doctest.h>

using namespace lissome;

namespace {

// Node i makes value i of so many bytes and reads the one before; what the last makes leaves.
StepModel make_chain(const std::vector<int64_t>& bytes) {
  StepModel model;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int value = static_cast<int>(i);
    StepNode node;
    node.seconds = 1;
    if (i > 0) node.reads = {value - 1};
    node.results = {value};
    model.nodes.push_back(node);
    model.producer.push_back(value);
    model.owner.push_back(value);
  }
  model.bytes = bytes;
  model.leaving = {static_cast<int>(bytes.size()) - 1};
  return model;
}

}  // namespace

TEST_CASE("a result takes over memory that ends where it is made, when it is as large") {
  StepModel model = make_chain({100, 100, 60, 10});
  const RunOrder plain = make_plain_schedule(model);
  CHECK(judge_schedule(model, plain, 0).peak == 200);
  model.nodes[1].in_place = {0};
  model.nodes[2].in_place = {1};
  CHECK(judge_schedule(model, plain, 0).peak == 160);
  std::vector<int64_t> live;
  judge_schedule(model, plain, 0, &live);
  CHECK(live == std::vector<int64_t>{100, 100, 160, 70});
}

TEST_CASE("memory that is read later is not taken over") {
  StepModel model = make_chain({100, 100, 60, 10});
  model.nodes[1].in_place = {0};
  model.nodes[3].reads.push_back(0);
  CHECK(judge_schedule(model, make_plain_schedule(model), 0).peak == 260);
  // Unless the value was recomputed for that reader.
  CHECK(judge_schedule(model, {0, 1, 2, 0, 3}, 0).peak == 170);
}

TEST_CASE("no schedule needs less than what a node touches beside what must be kept") {
  StepModel model = make_chain({100, 100, 60, 10});
  model.nodes[3].reads.push_back(0);
  CHECK(find_least_peak(model) == 200);  // node 1 with its operand
  CHECK(judge_schedule(model, {0, 1, 2, 0, 3}, 0).peak == 200);
  model.nodes[1].in_place = {0};
  CHECK(find_least_peak(model) == 170);  // node 3 with its two operands
  CHECK(judge_schedule(model, {0, 1, 2, 0, 3}, 0).peak == 170);
  model.nodes[0].repeatable = false;
  CHECK(find_least_peak(model) == 260);  // what node 0 made stays for node 3
  CHECK(judge_schedule(model, {0, 1, 2, 3}, 0).peak == 260);
}
