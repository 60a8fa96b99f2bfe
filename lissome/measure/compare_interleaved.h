// Timing contenders against each other in one run: the only ground on which "faster" is ever claimed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lissome/measure/statistics.h"

namespace lissome {

struct Contender {
  std::string name;
  std::function<void()> run;        // one call, timed from outside
  std::function<void()> wake = {};  // before each of them, untimed: what changing over costs; empty: nothing
};

struct InterleaveOptions {
  int warmup = 3;      // untimed calls of each contender first
  int rounds = 50;     // each contender runs once a round, in an order that is drawn
  double seconds = 0;  // stop after so long once `least_rounds` are done; 0: no bound
  int least_rounds = 10;
  double confidence = 0.95;  // of the ratios
  // Asked with the seconds of all rounds so far ([contender][round]) after `least_rounds`, and each time that the
  // rounds have doubled since: true ends the comparison. Each question is a test of its own, which `confidence` must
  // allow for.
  std::function<bool(const std::vector<std::vector<double>>& seconds)> decided;
  std::function<double()> now;  // seconds of the clock to go by; empty: the steady clock
  // Polled between calls of the warm-up and between rounds; the rounds so far are returned, at least one.
  std::function<bool()> should_stop;
};

struct Interleaved {
  std::vector<std::string> names;
  std::vector<std::vector<double>> seconds;  // [contender][round]
  std::vector<Summary> summaries;            // [contender]
  std::vector<Ratio> ratios;                 // [contender]: its time over contender 0's; [0] is 1
};

// The order of a round is drawn, the same in every process. Of two contenders that take equally long either one is then
// the faster of a round equally likely, whatever the noise: drift, the neighbour's cache and what comes back in step
// with the rounds favour none.
Interleaved compare_interleaved(const std::vector<Contender>& contenders, const InterleaveOptions& options = {});

}  // namespace lissome
