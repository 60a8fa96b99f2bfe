// Face of tune: a model and a goal in, a proven faster model and the story of how out. Every step is measured against
// the step before, interleaved, and undone when it does not pay or costs too much quality. There is always an answer.
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
  std::optional<double> latency;  // seconds, median of one call at the given batch; none: as fast as the loss allows
  std::optional<int64_t> memory;  // bytes that lissome's and libtorch's allocators hold at their peak, weights included
  double max_loss = 0.005;        // in the metric's own unit, absolute: 0.005 of accuracy, of cosine, of relative error
};

struct Optimized {
  Program program;  // what the plan was lowered from
  Plan plan;
  OptimizationRecord record;
  bool met = true;  // every goal
};

struct OptimizeOptions {
  Goal goal;
  std::optional<Metric> metric;  // default: top1 with class labels, else cosine
  int64_t batch = 0;             // samples of one call, for latency; 0: the fewest that the model takes
  int threads = 0;               // 0: what is fastest is measured
  double seconds = 600;          // bound on the whole search; steps that would not fit are left out and said so
  uint64_t seed = 0;             // of the split and of generated inputs
  std::string model_name;        // for the record
  std::string command;           // how to run this again, for the record
  // Of the lossy steps only those of this precision: f32 (none), bf16, or i8 (alone or with bf16). Default: all.
  std::optional<Dtype> precision;
  Effort effort = Effort::normal;    // with which the last stage chooses kernels; fast leaves it out
  std::vector<ForcedKernel> forced;  // kernels that every version but the original takes
  std::string keep_steps;            // a folder that gets the model before and after every accepted step; empty: none
  // Told the best so far once the original runs, and after every step; `better`: it is another than the last time. Its
  // record is marked as interrupted, with the figures of the steps in place of a last measurement. May be empty.
  std::function<void(const Optimized& so_far, bool better)> on_step;
};

// `data` may be null: then only exact steps are tried, on generated inputs. The original is left alone. Interrupted
// (control.stopped()), the best so far is returned as on_step has it; out of time, measured as usual. Throws what data
// and model errors throw; a goal out of reach is no error.
Optimized optimize(const Program& original, const Dataset* data, const OptimizeOptions& options,
                   const WorkControl& control = {});

// The model file with the plan and the record; nothing half-written.
void save_optimized(const Optimized& optimized, const std::string& path, FileContents contents = FileContents::plan);
// The same, without its name yet: see AtomicFile::publish().
std::unique_ptr<AtomicFile> seal_optimized(const Optimized& optimized, const std::string& path, FileContents contents);

// Bytes that libtorch's CPU allocator took on this thread at the peak of `work`, above what it held before.
int64_t measure_libtorch_peak(const std::function<void()>& work);

// The model as save_optimized writes it; without a record when it is null.
ModelFile pack_with_record(const Program& program, const Plan& plan, const Json& record, FileContents contents);

// The record as JSON, with every figure.
Json to_json(const OptimizationRecord& record);

}  // namespace lissome
