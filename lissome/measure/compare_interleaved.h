// Timing contenders against each other in one run: the only ground on which "faster" is ever claimed.
#pragma once

#include <cstdint>
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
  int rounds = 50;     // each contender runs once a round, in an order that alternates
  double seconds = 0;  // stop after so long once `least_rounds` are done; 0: no bound
  int least_rounds = 10;
  double confidence = 0.95;  // of the ratios
  uint64_t seed = 0;
  // Polled between calls of the warm-up and between rounds; the rounds so far are returned, at least one.
  std::function<bool()> should_stop;
};

struct Interleaved {
  std::vector<std::string> names;
  std::vector<std::vector<double>> seconds;  // [contender][round]
  std::vector<Summary> summaries;            // [contender]
  std::vector<Ratio> ratios;                 // [contender]: its time over contender 0's; [0] is 1
};

// Rounds alternate A B C, C B A, ... so that neither drift nor the neighbour's cache favours one of them.
Interleaved compare_interleaved(const std::vector<Contender>& contenders, const InterleaveOptions& options = {});

}  // namespace lissome
