// Places buffers that live for a span of steps in one arena, so that those alive at the same time never overlap.
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

// Largest first, each at the smallest gap that fits between those it meets in time. Returns the bytes of the arena.
int64_t plan_memory(std::vector<PlannedBuffer>& buffers);

// The independent judge, written apart from the planner: empty when nothing alive at the same time shares a byte, else
// what does.
std::string verify_memory_plan(const std::vector<PlannedBuffer>& buffers, int64_t arena_bytes);

}  // namespace lissome
