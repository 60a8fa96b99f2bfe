// The sizes of a step's values when it is measured on a small batch and wanted for a large one.
#pragma once

#include <vector>

#include "lissome/program.h"

namespace lissome {

// The sizes of the named dimensions when the program's first inputs have these sizes.
DimensionBindings bind_sizes(const Program& program, const std::vector<Sizes>& sizes);

class SizePrediction {
 public:
  // Interprets the program once on `measured`, its inputs. `wanted`: the sizes of these inputs to predict for; only
  // named dimensions may differ. Borrows the program. Throws the errors of bind_program().
  SizePrediction(const Program& program, const std::vector<at::Tensor>& measured, const std::vector<Sizes>& wanted);

  // Kind, dtype and sizes of the value when it was measured.
  const BoundValue& measured(ValueId id) const { return bound_.values[static_cast<size_t>(id)]; }
  int64_t count_measured(ValueId id) const;  // elements
  // Elements at the wanted sizes; those that were measured where the program does not tell the sizes.
  int64_t count_wanted(ValueId id) const;
  // The number of elements that the node computes at the wanted sizes, over that at the measured sizes. For a node
  // whose results do not grow with the batch, the growth of the batch.
  double scale(const Node& node) const;

 private:
  double scale_batch() const;

  const Program& program_;
  const Bound bound_;
  const DimensionBindings wanted_;
};

}  // namespace lissome
