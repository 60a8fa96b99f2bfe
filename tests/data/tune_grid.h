// run_data tune storage|transform: automatic settings of the loader against a grid of fixed ones.
#pragma once

#include <string>

namespace lissome {

// Prints the steps a second of each setting of the grid, of the automatic one and of the grid's best, and the ratio of
// both; false where that lies wholly below 0.95. Throws usage for another workload.
bool run_tune_grid(const std::string& workload);

}  // namespace lissome
