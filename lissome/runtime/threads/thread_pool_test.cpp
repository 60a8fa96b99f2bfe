// A thread pool runs every part once, stage after stage, whoever of its threads comes late or stays away.
#include "lissome/runtime/threads/thread_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "lissome/runtime/threads/helper_gain.h"

using namespace lissome;

namespace {

// Every part adds up what the stage before wrote, without atomics: a part too early, twice or never gives other sums.
struct Chain {
  std::vector<int> parts;
  std::vector<std::vector<int64_t>> written;  // by stage, by part
  std::vector<std::atomic<int>> runs;         // by stage

  explicit Chain(std::vector<int> cut) : parts(std::move(cut)), runs(parts.size()) {
    for (const int count : parts) written.emplace_back(static_cast<size_t>(count), 0);
  }

  static void run(void* argument, int stage, int part) {
    auto& chain = *static_cast<Chain*>(argument);
    const auto at = static_cast<size_t>(stage);
    int64_t sum = part + 1;
    if (at > 0) {
      for (const int64_t value : chain.written[at - 1]) sum += value % 1000;
    }
    chain.written[at][static_cast<size_t>(part)] += sum;
    ++chain.runs[at];
  }
  Region region() { return {parts, run, nullptr, this}; }
};

Chain make_chain(std::mt19937& random) {
  std::vector<int> parts(1 + random() % 12);
  for (int& count : parts) count = 1 + static_cast<int>(random() % 9);
  return Chain(parts);
}

void check_same(int threads, std::mt19937& random) {
  std::mt19937 again = random;
  Chain chain = make_chain(random), alone = make_chain(again);
  run_region(threads, chain.region());
  run_region(1, alone.region());
  REQUIRE(chain.written == alone.written);
  for (size_t i = 0; i < chain.parts.size(); ++i) REQUIRE(chain.runs[i] == chain.parts[i]);
}

// Where a thread goes on at once, gives its processor away or is away for up to half a millisecond.
void pause_at_random() {
  thread_local std::mt19937 random(std::hash<std::thread::id>()(std::this_thread::get_id()));
  const unsigned drawn = random() % 64;
  if (drawn < 8) std::this_thread::yield();
  if (drawn == 63) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
}

struct Disturbed {
  explicit Disturbed(void (*pause)()) { disturb_thread_pools(pause); }
  ~Disturbed() { disturb_thread_pools(nullptr); }
};

}  // namespace

TEST_CASE("a thread pool runs every part once and stages in order") {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) check_same(1 + i % 9, random);
}

TEST_CASE("a thread pool's results do not depend on when its threads come") {
  const Disturbed disturbed(pause_at_random);
  std::mt19937 random(2);
  for (int i = 0; i < 1000; ++i) check_same(2 + i % 4, random);
}

TEST_CASE("pools of several callers do not meet") {
  const Disturbed disturbed(pause_at_random);
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([t] {
      const ThreadPoolScope pool(t % 3);  // two of them take turns
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 200; ++i) check_same(2 + t % 2, random);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_CASE("nobody waits for a helper that has not begun") {
  static std::atomic<bool> held{true};
  static const std::thread::id caller = std::this_thread::get_id();
  // Helpers stay in their first look at the region, whose work the caller does.
  const Disturbed disturbed([] {
    while (held && std::this_thread::get_id() != caller) std::this_thread::yield();
  });
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) check_same(3, random);
  held = false;
  for (int i = 0; i < 100; ++i) check_same(3, random);
}

TEST_CASE("a caller hears of every stage that has ended") {
  struct Heard {
    std::atomic<int> ran{0};
    std::vector<int> stages, at_end;
  } heard;
  const std::vector<int> parts = {3, 1, 5};
  run_region(2, {parts, [](void* argument, int, int) { ++static_cast<Heard*>(argument)->ran; },
                 [](void* argument, int stage) {
                   auto& own = *static_cast<Heard*>(argument);
                   own.stages.push_back(stage), own.at_end.push_back(own.ran);
                 },
                 &heard});
  CHECK(heard.stages == std::vector<int>{0, 1, 2});
  // A helper may have begun the next stage by then.
  CHECK(heard.at_end[0] >= 3);
  CHECK(heard.at_end[1] >= 4);
  CHECK(heard.at_end[2] == 9);
}

TEST_CASE("helpers that bring nothing are left alone for a while, and tried again") {
  constexpr int64_t kMillisecond = 1'000'000;
  HelperGain gain;
  int64_t now = 0;
  const auto run = [&](int64_t took, int64_t waited, double own_share) {
    now += took;
    gain.note(now, took, waited, own_share);
  };
  for (int i = 0; i < 100; ++i) run(kMillisecond, kMillisecond / 20, 0.5);
  CHECK(gain.is_worth_trying(now));
  // One interruption of 4 ms among good calls changes nothing.
  run(5 * kMillisecond, 4 * kMillisecond, 0.5);
  for (int i = 0; i < 25; ++i) run(kMillisecond, 0, 0.5);
  CHECK(gain.is_worth_trying(now));
  int64_t pause = 0;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 10; ++i) run(kMillisecond, kMillisecond / 2, 0.5);
    REQUIRE_FALSE(gain.is_worth_trying(now));
    int64_t until = now;
    while (!gain.is_worth_trying(until)) until += kMillisecond;
    CHECK(until - now >= pause);
    CHECK(until - now < 1000 * kMillisecond);
    pause = until - now, now = until;
  }
  for (int i = 0; i < 10; ++i) run(kMillisecond, 0, 0.5);
  CHECK(gain.is_worth_trying(now));
}
