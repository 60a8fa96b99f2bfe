// The end of a search: totals, goals with advice, layers before and after, memory over time, the answer in one line.
#pragma once

#include "lissome/tune/variant.h"

namespace lissome {

// Why a step was left out or cut short; the answer counts them.
inline constexpr std::string_view kNoTimeLeft = "no time left";

// Measures; less where the work is stopped meanwhile, and fewer calls where `out_of_time` says so.
void complete_record(OptimizationRecord& record, Variant& original, Variant& best, const Bench& bench,
                     const OptimizeOptions& options, const WorkControl& control,
                     const std::function<bool()>& out_of_time);
// The same from the figures of the accepted steps alone, without layers: takes no time.
void describe_steps_so_far(OptimizationRecord& record, const Variant& original, const Variant& best,
                           const OptimizeOptions& options);

}  // namespace lissome
