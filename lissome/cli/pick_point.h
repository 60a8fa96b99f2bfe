// Takes a version from the front of an earlier search.
#pragma once

#include <string>

#include "lissome/cli/console.h"

namespace lissome {

// Writes the version of this name to `output`, and prints its figures. Throws usage for a folder without front.json, a
// front of another model, and a name that it lacks.
void pick_point(const std::string& folder, const std::string& name, const std::string& model, const std::string& output,
                bool json, const Console& console);

}  // namespace lissome
