// Places buffers that live for a span of steps in one arena, so that those alive at the same time never overlap:
// dynamic storage allocation, whose optimum is NP-hard to find (Garey & Johnson 1979, SR2), and near in practice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lissome {

struct PlannedBuffer {
  int64_t bytes = 0;
  int first_step = 0, last_step = 0;  // both ends included
  int64_t offset = 0;                 // filled by plan_memory, a multiple of 64
};

struct PlannedArena {
  int64_t bytes = 0;
  int64_t least_bytes = 0;  // the most that is alive at one step: no arena can be smaller
  bool optimal = false;     // proved: bytes == least_bytes, or an exhaustive search found nothing smaller
};

// Greedy placements in several orders; where the best is above the bound, the orders are annealed, and few buffers are
// searched exhaustively. Deterministic; some hundred buffers take about a millisecond, and up to a hundred where they
// have to be annealed.
PlannedArena plan_memory(std::vector<PlannedBuffer>& buffers);

// The independent judge, written apart from the planner: empty when nothing alive at the same time shares a byte, else
// what does.
std::string verify_memory_plan(const std::vector<PlannedBuffer>& buffers, int64_t arena_bytes);

}  // namespace lissome
