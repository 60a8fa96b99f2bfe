// The version of lissome, as the build names it.
#pragma once

#include <string_view>

namespace lissome {

std::string_view lissome_version();  // "0.1.0"

}  // namespace lissome
