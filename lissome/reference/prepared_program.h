// The nodes of one reference step, made ready once: operator handles looked up, literals in the form that the schema
// wants, weights in place, packing of weights done. Running it is then little more than the boxed calls.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <vector>

#include "lissome/program.h"
#include "lissome/runtime.h"

namespace lissome {

using IValues = std::vector<c10::IValue>;

class PreparedProgram {
 public:
  // Computes and keeps values that depend only on weights through packing ops (see is_packing_op). Moves weights to the
  // device; inputs must be there.
  PreparedProgram(Program program, const c10::Device& device);

  // Returns outputs in the program's order. `environment` is working memory that is reused from run to run and must be
  // emptied after a run that threw. `observe`, if not null, is called after each node with its position in the step's
  // origins, its results and its time in nanoseconds.
  IValues run(IValues inputs, IValues& environment,
              const std::function<void(size_t, const IValues&, int64_t)>* observe) const;

  int64_t packed_bytes() const { return packed_bytes_; }

 private:
  // An argument that is a value or holds some; the others lie ready in `arguments`.
  struct Open {
    size_t position;
    ValueId value;  // none: a list, built from the node's argument
    bool fits;      // the value needs no conversion
  };
  struct PreparedNode {
    size_t node;
    IValues arguments;
    std::vector<Open> open;
    std::vector<ValueId> dying;
    CheckedCall call;
  };

  PreparedNode prepare(size_t position, const std::vector<ValueId>& dying) const;
  IValues run_node(const PreparedNode& prepared, IValues& environment) const;
  bool is_constant(const Node& node, const std::vector<bool>& known) const;

  Program program_;
  c10::Device device_;
  IValues constants_;  // by ValueId: weights and what was packed from them
  std::vector<PreparedNode> nodes_;
  int64_t packed_bytes_ = 0;
};

// Reorders weights for one kernel of libtorch's; the result may be opaque, so that it cannot be kept in a plan.
bool is_packing_op(const Op& op);

}  // namespace lissome
