// Completes the record of a search: totals, goals with advice, layers before and after, memory over time, and a
// one-line answer.
#pragma once

#include "lissome/tune/variant.h"

namespace lissome {

// The reason of a step that was left out or cut short. The answer counts such steps.
inline constexpr std::string_view kNoTimeLeft = "no time left";

// "2.00 times faster (...): 2.00 ms instead of 4.00 ms, 20.0 MiB of memory instead of ...", of a record whose figures
// are complete, with the goals that were missed.
std::string make_answer(const OptimizationRecord& record);

// Completes the record by measurements, but for the goals. Measures less if the work is stopped, and fewer calls if
// `out_of_time` is true.
void complete_record(OptimizationRecord& record, Variant& original, Variant& best, const Bench& bench,
                     const OptimizeOptions& options, const WorkControl& control,
                     const std::function<bool()>& out_of_time);
// Judges the goals and completes the answer, with the size of the finished file, which holds this record. Last of all,
// because the file grows with the record.
void judge_with_file(OptimizationRecord& record, const Variant& best, const OptimizeOptions& options);
// Completes the record from the numbers of the accepted steps, without layers. Measures nothing.
void describe_steps_so_far(OptimizationRecord& record, const Variant& original, const Variant& best,
                           const OptimizeOptions& options);

}  // namespace lissome
