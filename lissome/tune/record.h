// The end of a search: totals, goals with advice, layers before and after, memory over time, the answer in one line.
#pragma once

#include "lissome/tune/variant.h"

namespace lissome {

// Measures; less where the work is stopped meanwhile.
void complete_record(OptimizationRecord& record, Variant& original, Variant& best, const Bench& bench,
                     const OptimizeOptions& options, const WorkControl& control);
// The same from the figures of the accepted steps alone, without layers: takes no time.
void describe_steps_so_far(OptimizationRecord& record, const Variant& original, const Variant& best,
                           const OptimizeOptions& options);

// The model file: program, plan, and the record as metadata where there is one.
void save_with_plan(const Program& program, const Plan& plan, const Json& record, const std::string& path);

}  // namespace lissome
