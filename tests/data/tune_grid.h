// run_data tune storage|transform: automatic settings of the loader against a grid of fixed ones.
#pragma once

#include <string>

namespace lissome {

// Prints the steps a second of each setting of the grid, of the automatic one and of the grid's best, and the ratio of
// both. Throws usage for another workload.
void run_tune_grid(const std::string& workload);

}  // namespace lissome
