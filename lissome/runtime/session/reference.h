// How the runtime speaks with the reference library, which holds everything that needs libtorch. The library is loaded
// when a plan has reference steps, and only then.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lissome/base.h"
#include "lissome/runtime/plan/plan.h"

namespace lissome {

// What one node, or one native step, took.
struct StepTiming {
  int step = -1;                       // position in Plan::steps
  const PlanOrigin* origin = nullptr;  // lives as long as the plan
  std::string_view kernel;             // "linear_f32", "reference"
  std::string_view isa;                // of native kernels
  int parts = 1;                       // threads that shared the work
  int64_t nanoseconds = 0;
  int64_t bytes = 0;              // of operands and results
  double products = 0;            // multiply-adds of native kernels, where those are what counts; else 0
  Dtype multiplied = Dtype::f32;  // what those products are of; u8 stands for u8 with s8
};
using StepSink = std::function<void(const StepTiming&)>;

// The values of one run that libtorch holds, and the steps that it runs. Used by one thread at a time.
class ReferenceRun {
 public:
  virtual ~ReferenceRun() = default;
  // Lends memory of ours under the position of a value, until the run is cleared.
  virtual void lend(PlanValueId value, const TensorView& view) = 0;
  // The same for an input that is a number: `kind` says which; `view` points to an i64, f64 or bool.
  virtual void lend_number(PlanValueId value, PlanKind kind, const TensorView& view) = 0;
  virtual void run_step(int step, const StepSink* sink) = 0;
  // A held tensor as dense memory in this format; stays valid until the value is dropped. Throws invalid_input when
  // dtype or sizes are not those.
  virtual void* read(PlanValueId value, Dtype dtype, const Sizes& sizes, Format format) = 0;
  // A held value for the caller: an array of its own, row-major; numbers become arrays without dimensions, none an
  // array without storage. `take` gives the value away, `copy` leaves it held.
  virtual Array take(PlanValueId value) = 0;
  virtual Array copy(PlanValueId value) = 0;
  virtual void drop(PlanValueId value) = 0;
  virtual void clear() = 0;
};

class Reference {
 public:
  virtual ~Reference() = default;
  virtual std::unique_ptr<ReferenceRun> make_run() const = 0;
  virtual int64_t packed_bytes() const = 0;  // of weights that libtorch prepacked for itself
};

struct ReferenceSetup {
  const Plan* plan = nullptr;  // outlives the reference
  std::vector<Array> arrays;   // by Plan::arrays; the session's own copies where they are state
  int threads = 1;
};

// The symbol `lissome_open_reference` of liblissome_reference.so.
using OpenReference = Reference* (*)(const ReferenceSetup&);

// Loads the library from beside the runtime's own. Throws unsupported, naming nodes, when it or libtorch is absent.
std::unique_ptr<Reference> open_reference(const ReferenceSetup& setup);

}  // namespace lissome
