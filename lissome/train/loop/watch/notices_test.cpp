// Users get notices of what they might not expect before the first step, and when memory grows.
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "lissome/train/loop/test_line.h"
#include "lissome/train/loop/watch/memory_watch.h"
#include "lissome/train/loop/watch/setup_notices.h"

using namespace lissome;

namespace {

std::string list_line_notices(const std::string& range, int64_t batch) {
  const Dataset data = make_line();
  const Program program = make_line_model(range);
  TrainOptions options = make_line_options();
  options.batch = batch;
  const TrainingModel model = make_training_model(program, program, data, nullptr, options);
  OffloadedWeights weights;
  const CurrentStep step(model, data, options, weights);
  return join(list_setup_notices(model, step, data, model.batch, options), "\n");
}

}  // namespace

TEST_CASE("a notice is kept and passed on at once") {
  std::vector<std::string> heard;
  const NoticeLog::Listener listener = [&](const std::string& text) { heard.push_back(text); };
  NoticeLog notices(listener);
  notices.add("one");
  CHECK(heard == std::vector<std::string>{"one"});
  notices.add("two");
  CHECK(notices.texts() == heard);
}

TEST_CASE("samples that fill no batch are in a notice before the first step") {
  CHECK(list_line_notices("1..64", 7).empty());
  CHECK(list_line_notices("8", 7).find("fixed batch size of 8") != std::string::npos);
  CHECK(list_line_notices("8", 8).empty());
  CHECK(list_line_notices("3..64", 19).find("so the last 2 of each epoch") != std::string::npos);
}

TEST_CASE("a memory record holds the peak of a step and what lies beside it") {
  MemoryTimeline timeline;
  timeline.reserved = 100, timeline.values = {10, 50, 20}, timeline.scratch = {0, 7, 90}, timeline.peak_step = 1;
  const TrainingBytes bytes{.weights = 1, .gradients = 2, .states = 3};
  const MemoryRecord memory = count_memory(timeline, {at::ones({4, 2}), at::ones({4})}, bytes);
  CHECK(memory.weights == 1);
  CHECK(memory.gradients == 2);
  CHECK(memory.states == 3);
  CHECK(memory.batch == 12 * 4);
  CHECK(memory.activations == 50);
  CHECK(memory.scratch == 7);
  CHECK(memory.reserved == 100);
  timeline.peak_step = -1;
  CHECK(count_memory(timeline, {}, bytes).activations == 0);
}

TEST_CASE("memory is looked at after the first step and every so many, and steady growth gives one notice") {
  TrainRecord record;
  record.steps = 1;
  CHECK(MemoryWatch(0, 100).is_due(record));
  CHECK_FALSE(MemoryWatch(0, 0).is_due(record));
  record.places.emplace_back();
  CHECK_FALSE(MemoryWatch(0, 100).is_due(record));
  record.steps = 200;
  CHECK(MemoryWatch(0, 100).is_due(record));
  MemoryWatch watch(0, 100);
  std::vector<std::string> heard;
  for (int64_t i = 1; i <= 20; ++i) {
    if (const auto growth = watch.check_growth(i << 20)) heard.push_back(*growth);
  }
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].find("more than 500 steps ago") != std::string::npos);
}

TEST_CASE("an average that is mostly made of the first weights is in a notice") {
  TrainOptions options;
  CHECK(describe_average(options, 1).empty());
  options.average_decay = 0.999;
  CHECK(describe_average(options, 9)
            .find("after the planned 9 steps the moving average will still consist of the first weights by 99 %") == 0);
  CHECK(describe_average(options, 2300).find("by 10 %") != std::string::npos);
  CHECK(describe_average(options, 2400).empty());
}
