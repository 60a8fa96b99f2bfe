// Counts what the whole process takes from the heap, on every thread: for tests of code that must take nothing. Linking
// count_allocations.cpp replaces the allocation functions of the C library, which `new` and every library go through.
#pragma once

#include <cstdint>

namespace lissome {

// Calls of malloc and its kin since the process began.
int64_t count_allocations();

}  // namespace lissome
