// libtorch's share of a step's memory, on facts small enough to count by hand.
#include "lissome/train/budget/facts/step_memory.h"

#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("held values count, and what libtorch takes while nodes run") {
  StepFacts facts;
  StepModel& model = facts.model;
  model.nodes.resize(3);
  model.nodes[0].results = {0};
  model.nodes[0].scratch = 1000;  // a step of ours: in the arena
  model.nodes[1].reads = {0};
  model.nodes[1].results = {1};
  model.nodes[2].reads = {1};
  model.nodes[2].results = {2};
  model.producer = {0, 1, 2};
  model.owner = {0, 1, 2};
  model.bytes = {100, 60, 20};
  model.leaving = {2};
  facts.held = {false, true, true};
  facts.held_scratch = {0, 7, 0};
  CHECK(predict_held(facts, make_plain_schedule(model)) == 80);
  facts.held_scratch[1] = 30;
  CHECK(predict_held(facts, make_plain_schedule(model)) == 90);
  facts.held_scratch[0] = 95;  // a step of ours that reads a copy
  CHECK(predict_held(facts, make_plain_schedule(model)) == 95);
}
