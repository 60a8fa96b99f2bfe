// What our own ops say when they are called wrongly.
#pragma once

#include "lissome/base.h"

namespace lissome {

// Throws invalid_input with the parts joined unless `condition` holds.
template <typename... Parts>
void check_arguments(bool condition, const Parts&... parts) {
  if (!condition) throw_error(ErrorKind::invalid_input, parts...);
}

}  // namespace lissome
