// The way that imports by recording share: runs, their conversion to a program, and the proof that it gives what the
// recorded code gave, at every size and on other data.
#pragma once

#include "lissome/program/record/record_runs.h"

namespace lissome {

// Throws what run_module() and convert_recordings() throw, and unsupported where the program gives something else.
Program import_recorded(const RecordedModule& module, const std::vector<TracedInput>& inputs,
                        const ForwardMany& forward);

}  // namespace lissome
