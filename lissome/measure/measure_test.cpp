#include "lissome/measure.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "lissome/base.h"
#include "tests/expect_error.h"

using namespace lissome;

TEST_CASE("the order of a round is drawn, the same each time") {
  const auto draw = [] {
    std::string order;
    compare_interleaved({{"a", [&] { order += 'a'; }}, {"b", [&] { order += 'b'; }}, {"c", [&] { order += 'c'; }}},
                        {.warmup = 0, .rounds = 600});
    return order;
  };
  const std::string order = draw();
  std::map<std::string, int> rounds;
  for (size_t i = 0; i < order.size(); i += 3) ++rounds[order.substr(i, 3)];
  REQUIRE(rounds.size() == 6);
  for (const auto& [round, count] : rounds) {
    CAPTURE(round);
    CHECK(count > 55);  // 100 expected; five deviations below
  }
  CHECK(draw() == order);
}

TEST_CASE("a comparison asks whether it is decided after the least rounds and each time that they have doubled") {
  double clock = 0;
  std::vector<size_t> looks;
  InterleaveOptions options;
  options.rounds = 100, options.least_rounds = 5;
  options.now = [&] { return clock; };
  options.decided = [&](const std::vector<std::vector<double>>& seconds) {
    looks.push_back(seconds[0].size());
    CHECK(seconds[1].size() == seconds[0].size());
    return seconds[0].size() >= 20;
  };
  const Interleaved result = compare_interleaved({{"a", [&] { clock += 2; }}, {"b", [&] { clock += 1; }}}, options);
  CHECK(looks == std::vector<size_t>{5, 10, 20});
  CHECK(result.seconds[0] == std::vector<double>(20, 2.0));
  CHECK(result.ratios[1].median == 0.5);
}

TEST_CASE("interleaved rounds rank the contenders") {
  const auto wait = [](int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); };
  InterleaveOptions options;
  options.warmup = 0;
  options.rounds = 12;
  const Interleaved result =
      compare_interleaved({{"slow", [&] { wait(3000); }}, {"fast", [&] { wait(300); }}}, options);
  CHECK(result.seconds[0].size() == 12);
  CHECK(result.ratios[0].median == 1);
  CHECK(result.ratios[1].below_one());
}

TEST_CASE("what wakes a contender runs before each of its calls and is not timed") {
  std::string order;
  const auto sleep_long = [&] {
    order += 'w';
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  const Interleaved result =
      compare_interleaved({{"a", [&] { order += 'a'; }, sleep_long}, {"b", [&] { order += 'b'; }}},
                          {.warmup = 0, .rounds = 2, .least_rounds = 2});
  CHECK((order == "wabwab" || order == "wabbwa" || order == "bwawab" || order == "bwabwa"));
  CHECK(result.summaries[0].median < 10e-3);
}

TEST_CASE("an interleaved run stops when asked or when its time is over, never below the least rounds") {
  InterleaveOptions options;
  options.rounds = 1000;
  options.least_rounds = 5;
  options.seconds = 1e-9;
  CHECK(compare_interleaved({{"x", [] {}}}, options).seconds[0].size() == 5);
  int polled = 0;
  options.seconds = 0, options.warmup = 0;
  options.should_stop = [&] { return ++polled == 7; };
  CHECK(compare_interleaved({{"x", [] {}}}, options).seconds[0].size() == 7);
  int runs = 0;
  options.warmup = 1000;
  options.should_stop = [&] { return runs >= 3; };
  CHECK(compare_interleaved({{"x", [&] { ++runs; }}}, options).seconds[0].size() == 1);
  CHECK(runs == 4);
}

TEST_CASE("spans are kept while a trace records and make a readable Chrome trace") {
  {
    Span unseen("before");
  }
  std::string text;
  {
    Trace trace;
    {
      Span outer("outer", "detail");
      Span inner("inner");
    }
    CHECK(trace.records().size() == 2);
    CHECK_THROWS_AS(Trace{}, Error);
    text = print_chrome_trace(trace.records());
  }
  const Json json = parse_json(text, "trace");
  CHECK(json["traceEvents"].size() == 2);
  CHECK(json["traceEvents"][1]["name"] == "outer");
  CHECK(json["traceEvents"][1]["args"]["detail"] == "detail");
  CHECK(json["traceEvents"][1]["dur"].get<double>() >= json["traceEvents"][0]["dur"].get<double>());
}

TEST_CASE("a probe tells the peak and what is kept, and one around it hears of both") {
  MemoryCounter& counter = allocator_memory();
  MemoryProbe outer;
  counter.add(500);
  counter.remove(400);
  {
    MemoryProbe inner;
    CHECK(inner.finish().efficiency() == 1);
    counter.add(300);
    counter.remove(240);
    const MemoryUse use = inner.finish();
    CHECK(use.peak == 300);
    CHECK(use.kept == 60);
    CHECK(use.efficiency() == doctest::Approx(0.2));
  }
  CHECK(outer.finish().peak == 500);
  CHECK(outer.finish().kept == 160);
  counter.remove(160);
}

TEST_CASE("the memory counter keeps the peak and the resident set grows with touched pages") {
  MemoryCounter counter;
  counter.add(100);
  counter.add(50);
  counter.remove(120);
  CHECK(counter.live() == 30);
  CHECK(counter.peak() == 150);
  counter.reset_peak();
  CHECK(counter.peak() == 30);
  counter.set_limit(100);
  EXPECT_ERROR(over_budget, counter.take(71, "a block"), "a block of 71 B", "30 B are taken of 100 B");
  counter.take(70, "a block");
  CHECK(counter.live() == 100);

  const ResidentMemory before = read_resident_memory();
  constexpr size_t kBytes = 32 << 20;
  const auto block = std::make_unique<char[]>(kBytes);
  std::memset(block.get(), 1, kBytes);
  CHECK(read_resident_memory().now - before.now >= static_cast<int64_t>(kBytes) * 9 / 10);
}
