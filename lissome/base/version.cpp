// The build passes the project's version to this file alone, so that a new version compiles one file.
#include "lissome/base/version.h"

namespace lissome {

std::string_view lissome_version() { return LISSOME_VERSION; }

}  // namespace lissome
