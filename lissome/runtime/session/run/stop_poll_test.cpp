// How often a run is polled.
#include "lissome/runtime/session/run/stop_poll.h"

#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("a run is polled where somebody may stop it, as often as its last length asks for") {
  StopPoll poll(1000);
  poll.poll();
  CHECK_FALSE(poll.is_set());
  CHECK(poll.count_steps_between() > 1'000'000);  // none
  bool stop = false;
  poll.set([&] { return stop; });
  poll.poll();
  CHECK(poll.count_steps_between() == 16);  // nothing is known yet
  poll.note_run(1'000'000'000);
  CHECK(poll.count_steps_between() == 51);  // 50 ms of 1 s
  poll.note_run(1'000'000);
  CHECK(poll.count_steps_between() >= 1000);  // a short run is not cut
  stop = true;
  CHECK_THROWS_AS(poll.poll(), RunInterrupted);
}
