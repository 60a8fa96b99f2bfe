// Updates weights from gradients: AdamW, Adam, SGD, Lion and Adafactor, equal to PyTorch's. f32 weights on the CPU are
// updated by the kernels of kernel/optimizer/optimizer.h in one pass over memory, parallel over all weights; other
// weights by ATen's ops with the same factors. Checks and unscales gradients, clips them by their global norm, and
// skips steps whose gradients are not finite. States have names, so that snapshots do not depend on their order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lissome/train/remat/offload_file.h"

namespace lissome {

// Names and defaults are PyTorch's; Lion's are those of its paper. With states_8bit the moments take 8 bits a number in
// place of 32, for f32 weights on the CPU of at least 4096 elements (see kernel/optimizer/adam_8bit.h). Steps are then
// close to PyTorch's, not equal.
struct AdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool states_8bit = false;
};
struct Adam {  // weight_decay is an L2 penalty, so it is added to gradients before the moments
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool states_8bit = false;
};
struct Sgd {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};
struct Lion {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
// Keeps the second moment of a matrix as a row and a column (Shazeer and Stern 2018, arXiv 1804.04235).
struct Adafactor {
  double lr = 1e-2, beta2_decay = -0.8, eps1 = 1.1920928955078125e-07, eps2 = 1e-3, d = 1, weight_decay = 0;
};
using OptimizerOptions = std::variant<AdamW, Adam, Sgd, Lion, Adafactor>;

struct Parameter {
  std::string name;
  at::Tensor weight;     // floating, contiguous; changed in place
  at::Tensor bf16_copy;  // undefined, or contiguous bf16 of the same sizes, to which every new weight is copied
};

// Settings for parameters whose name matches a shell-style pattern ("encoder.*", "*.bias"). The first group that
// matches counts.
struct ParameterGroup {
  std::string pattern;
  double lr_factor = 1;
  std::optional<double> weight_decay;  // default: the optimizer's
  bool frozen = false;                 // never changed; its gradient is ignored
};

struct StepOptions {
  std::optional<double> lr;        // default: the optimizer's
  std::optional<double> momentum;  // momentum of SGD, beta1 of AdamW, Adam and Lion; Adafactor has none
  double clip_norm = 0;            // largest global norm of gradients; 0: they are not clipped
  double loss_scale = 1;           // the factor of the loss
};

struct StepResult {
  double gradient_norm = 0;  // global, unscaled, before clipping
  bool skipped = false;      // a gradient was not finite, so nothing was changed
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

class Optimizer {
 public:
  // Throws invalid_input for an option out of range, a name or memory that occurs twice, a pattern that matches no
  // parameter, and a weight that is not floating or not contiguous. `offload`: a folder where states are kept in a
  // file, read ahead of the updates and written back behind them. Offloaded weights leave the memory behind their
  // update. With a folder this throws the errors of OffloadFile, and unsupported if weights are not on the CPU.
  Optimizer(std::vector<Parameter> parameters, const OptimizerOptions& options,
            const std::vector<ParameterGroup>& groups = {}, const std::string& offload = {});

  // `gradients` in the order of the parameters. A weight whose gradient is undefined stays as it is. A sparse gradient
  // (COO over the rows, as embeddings give) changes only its rows of weights and states, as SparseAdam does. Throws
  // invalid_input if sizes do not fit, unsupported for a sparse gradient with Adafactor or 8-bit states.
  StepResult step(const std::vector<at::Tensor>& gradients, const StepOptions& options = {});
  // Updates a single parameter whose gradient is ready before the others. options.clip_norm must be 0, because clipping
  // needs all gradients. Returns the unscaled norm of the gradient; if it is not finite, nothing was changed.
  double update(size_t parameter, const at::Tensor& gradient, const StepOptions& options);
  // Allocates all states now; else the first update does.
  void reserve_states();

  // "fc.weight/exp_avg", "fc.weight/step", ...: the states of updated weights. They are the states themselves, not
  // copies.
  NamedTensors state() const;
  // Copies states that state() gave for the same parameters and options. Throws invalid_input for an unknown or missing
  // name, other sizes or another dtype, and then changes nothing.
  void restore_state(const NamedTensors& state);

 private:
  struct Trained {
    Parameter parameter;
    double lr_factor = 1, weight_decay = 0;
    bool frozen = false;
    int64_t steps = 0;
    std::vector<at::Tensor> states;  // empty before the first step
    ByteRange place;                 // range of the states in the file
  };
  // Parameters that are updated together, and the range of their states in the file.
  struct Stretch {
    size_t first = 0, last = 0;
    ByteRange bytes;
  };
  void plan_stretches(const std::string& offload);
  void fetch(const Stretch& stretch) const;
  std::vector<at::Tensor> make_states(const Trained& trained) const;
  at::Tensor prepare(const Trained& trained, const at::Tensor& gradient) const;
  void update_all(std::span<const at::Tensor> gradients, const StepOptions& options, double gradient_scale);
  void update_some(size_t first, std::span<const at::Tensor> gradients, const StepOptions& options,
                   double gradient_scale);

  OptimizerOptions options_;
  std::vector<Trained> trained_;
  std::vector<Stretch> stretches_;
  std::shared_ptr<const OffloadFile> file_;  // null: states are in memory
};

}  // namespace lissome
