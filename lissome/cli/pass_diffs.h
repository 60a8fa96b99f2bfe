// What passes changed, for --diff.
#pragma once

#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/pass.h"

namespace lissome {

// [{"pass", "text"}] of the passes that changed something.
Json list_diffs(const std::vector<PassResult>& results);
// The same as text.
std::string describe_diffs(const std::vector<PassResult>& results);

}  // namespace lissome
