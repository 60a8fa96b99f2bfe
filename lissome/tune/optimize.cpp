// Runs the stages in their order and returns the result.
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
  search.widen_judge();
  run_computation_stage(search);
  run_compilation_stage(search);
  run_deployment_stage(search);
  if (control.stopped()) return search.describe_so_far();
  search.report("validation", "measuring the result against the original");
  Optimized result = search.finish();
  // The final measurement counts unless it was cut short.
  return control.stopped() ? search.describe_so_far() : result;
}

void save_optimized(const Optimized& optimized, const std::string& path, FileContents contents) {
  seal_optimized(optimized, path, contents)->commit();
}

std::unique_ptr<AtomicFile> seal_optimized(const Optimized& optimized, const std::string& path, FileContents contents) {
  const Json record = to_json(optimized.record);
  return seal_model_file(path, pack_with_record(optimized.program, optimized.plan, record, contents));
}

}  // namespace lissome
