// Face of tune: searches for a faster version of a model that meets a goal, and records every step. Each step is
// measured against the step before, interleaved, and is undone if it does not pay or costs too much quality. A search
// always returns a result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lissome/compare.h"
#include "lissome/data.h"
#include "lissome/lower.h"
#include "lissome/measure.h"
#include "lissome/program.h"
#include "lissome/runtime.h"

namespace lissome {

struct Goal {
  std::optional<double> latency;  // seconds, median of one call at the given batch; empty: as fast as max_loss allows
  std::optional<int64_t> memory;  // bytes that lissome's and libtorch's allocators hold at their peak, weights included
  double max_loss = 0.005;  // absolute, in the unit of the metric: 0.005 of accuracy, of cosine, of relative error
};

struct Optimized {
  Program program;  // the program that the plan was lowered from
  Plan plan;
  OptimizationRecord record;
  bool met = true;  // whether every goal is met
};

struct OptimizeOptions {
  Goal goal;
  std::optional<Metric> metric;  // default: top1 with class labels, else cosine
  int64_t batch = 0;             // samples of one call, for latency; 0: the fewest that the model takes
  int threads = 0;               // 0: the fastest number, which is measured
  double seconds = 600;    // limit on the whole search; the record names steps that were left out for lack of time
  uint64_t seed = 0;       // for the split of data and for generated inputs
  std::string model_name;  // for the record
  std::string command;     // the command that repeats this search, for the record
  // Tries only lossy steps of this precision: f32 (none), bf16, or i8 (alone or with bf16). Default: all.
  std::optional<Dtype> precision;
  Effort effort = Effort::normal;    // effort of choosing kernels in the last stage; fast leaves the stage out
  std::vector<ForcedKernel> forced;  // kernels that every version except the original uses
  std::string keep_steps;            // folder for the models before and after every accepted step; empty: none
  // Called with the best version so far once the original has run, and after every step. `better`: it differs from that
  // of the last call. Its record is marked as interrupted and has the numbers of the steps in place of a final
  // measurement. May be empty.
  std::function<void(const Optimized& so_far, bool better)> on_step;
};

// If `data` is null, only exact steps are tried, on generated inputs. The original does not change. When interrupted
// (control.stopped()), returns the best version so far in the form of on_step; when time runs out, measures it as
// usual. Throws the errors of data and model. A goal that is not met is not an error.
Optimized optimize(const Program& original, const Dataset* data, const OptimizeOptions& options,
                   const WorkControl& control = {});

// Writes the model file with the plan and the record. The file is whole or absent.
void save_optimized(const Optimized& optimized, const std::string& path, FileContents contents = FileContents::plan);
// Writes the same file without giving it its name; see AtomicFile::publish().
std::unique_ptr<AtomicFile> seal_optimized(const Optimized& optimized, const std::string& path, FileContents contents);

// Most bytes that libtorch's CPU allocator held on this thread during `work`, above those before.
int64_t measure_libtorch_peak(const std::function<void()>& work);

// The model as save_optimized() writes it; without a record if `record` is null.
ModelFile pack_with_record(const Program& program, const Plan& plan, const Json& record, FileContents contents);

// The record as JSON, with all numbers.
Json to_json(const OptimizationRecord& record);

}  // namespace lissome
