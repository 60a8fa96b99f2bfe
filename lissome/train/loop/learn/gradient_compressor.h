// What sums gradients over the ranks of a group without sending every number.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lissome/distributed.h"
#include "lissome/train/loop/learn/gradient_compression.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

// The part of a rank in one update.
struct RankShare {
  double weight = 0;               // the factor that its gradients carry; over all ranks the sum is 1
  std::optional<double> momentum;  // as StepOptions has it
};

class GradientCompressor {
 public:
  GradientCompressor() = default;
  GradientCompressor(const GradientCompressor&) = delete;
  GradientCompressor& operator=(const GradientCompressor&) = delete;
  virtual ~GradientCompressor() = default;

  // Steps from 0 in which gradients are only prepared; every number travels.
  virtual int64_t dense_steps() const = 0;
  // Whether sum() sums the gradient of this parameter; the others travel as they are.
  virtual bool takes(size_t parameter) const = 0;
  // Changes the gradients of this rank, of all parameters in their order, before they are summed.
  virtual void prepare(const std::vector<at::Tensor>& gradients, const RankShare& share) = 0;
  // Replaces each gradient that it takes by about its sum over all ranks, with the same bits on each.
  virtual void sum(Group& group, const std::vector<at::Tensor>& gradients, const std::string& what) = 0;
  // Leaves out of a step what prepare() did.
  virtual void adjust(StepOptions& options) const = 0;
  // Bytes that a rank gives to one sum().
  virtual int64_t count_bytes() const = 0;

  // Named tensors, the states themselves: of this rank, whose sum over the ranks counts, and equal on all ranks.
  virtual NamedTensors list_own_state() const = 0;
  virtual NamedTensors list_common_state() const = 0;
};

// What optimizers do with the gradients; as TrainOptions has it.
struct CompressedOptimizer {
  const OptimizerOptions& options;
  const std::vector<ParameterGroup>& groups;
  double clip_norm = 0;
};

// Null for dense gradients and functions. `parameters`: trained weights with their names. Throws usage for options out
// of range and an optimizer that the compression excludes.
std::unique_ptr<GradientCompressor> make_compressor(const GradientCompression& compression,
                                                    const NamedTensors& parameters,
                                                    const CompressedOptimizer& optimizer);

// At most the bytes of memory that the exchange takes for a parameter: the f32 gradient that is summed, what travels of
// it, and what compression keeps, which a snapshot has of each rank.
int64_t count_exchange_bytes(const GradientCompression& compression, const OptimizerOptions& optimizer,
                             const at::Tensor& parameter, int ranks);

}  // namespace lissome
