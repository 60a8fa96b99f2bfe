// The order of the stages, and what comes back.
#include <ATen/core/ivalue.h>

#include "lissome/tune.h"

#include <nlohmann/json.hpp>

#include "lissome/tune/record.h"
#include "lissome/tune/search.h"
#include "lissome/tune/stages.h"

namespace lissome {

Optimized optimize(const Program& original, const Dataset* data, const OptimizeOptions& options,
                   const WorkControl& control) {
  Search search(original, data, options, control);
  run_basic_stage(search);
  run_memory_stage(search);
  run_computation_stage(search);
  run_compilation_stage(search);
  run_deployment_stage(search);
  search.report("validation", "measuring the result against the original");
  Optimized result;
  result.record = search.finish();
  result.program = *search.best().program;
  result.plan = *search.best().plan;
  for (const GoalRecord& goal : result.record.goals) result.met = result.met && goal.met;
  return result;
}

void save_optimized(const Optimized& optimized, const std::string& path) {
  save_with_plan(optimized.program, optimized.plan, to_json(optimized.record), path);
}

}  // namespace lissome
