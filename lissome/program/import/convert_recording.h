// From recordings of a module's runs to a program: the second half of import_module.
#pragma once

#include "lissome/program/record/record_runs.h"

namespace lissome {

// A program of the calls that all recordings share; numbers that differ between them are computed from sizes. Throws
// unsupported where the recordings differ otherwise, or the module reads numbers out of tensors.
Program convert_recordings(const RecordedModule& module, const std::vector<TracedInput>& inputs,
                           const std::vector<ModuleRun>& runs);

}  // namespace lissome
