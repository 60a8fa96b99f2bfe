// See run_steps.cpp.
#pragma once

#include <string>
#include <vector>

namespace lissome {

void run_steps(const std::vector<std::string>& paths);

}  // namespace lissome
