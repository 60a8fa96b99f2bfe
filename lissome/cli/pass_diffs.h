// Shows the changes of passes, for --diff.
#pragma once

#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/pass.h"

namespace lissome {

// [{"pass", "text"}] for the passes that changed the program.
Json list_diffs(const std::vector<PassResult>& results);
// The same changes as text.
std::string describe_diffs(const std::vector<PassResult>& results);

}  // namespace lissome
