// Updates of weights from gradients: AdamW, Adam, SGD, Lion and Adafactor, equal to PyTorch's. f32 weights on the CPU
// go through the kernels of kernel/optimizer.h, one pass over memory and parallel over all weights; others through
// ATen's ops with the same factors. Checks and unscales gradients, clips them by their global norm, skips steps whose
// gradients are not finite. No torch::optim: states have names, so that snapshots need no order.
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

// Names and defaults are PyTorch's; Lion's are those of its paper. With byte_states the moments of f32 weights on the
// CPU that have at least 4096 elements take one byte a number in place of four (see kernel/adam_8bit.h): less memory,
// and steps that are close to, not equal to, PyTorch's.
struct AdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool byte_states = false;
};
struct Adam {  // weight_decay is an L2 penalty: it goes through the moments
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool byte_states = false;
};
struct Sgd {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};
struct Lion {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
// The second moment of a matrix as a row and a column (Shazeer and Stern 2018, arXiv 1804.04235).
struct Adafactor {
  double lr = 1e-2, beta2_decay = -0.8, eps1 = 1.1920928955078125e-07, eps2 = 1e-3, d = 1, weight_decay = 0;
};
using OptimizerOptions = std::variant<AdamW, Adam, Sgd, Lion, Adafactor>;

struct Parameter {
  std::string name;
  at::Tensor weight;     // floating, contiguous; changed in place
  at::Tensor bf16_copy;  // undefined, or bf16 of the same sizes, contiguous: gets every new weight
};

// For the parameters whose name fits a shell-style pattern ("encoder.*", "*.bias"); the first group that fits counts.
struct ParameterGroup {
  std::string pattern;
  double lr_factor = 1;
  std::optional<double> weight_decay;  // in place of the optimizer's
  bool frozen = false;                 // never changed, gradient not looked at
};

struct StepOptions {
  std::optional<double> lr;        // default: the optimizer's
  std::optional<double> momentum;  // SGD's momentum, beta1 of the Adams and Lion; Adafactor has none
  double clip_norm = 0;            // gradients are scaled down to this global norm; 0: not
  double loss_scale = 1;           // what the loss was multiplied by
};

struct StepResult {
  double gradient_norm = 0;  // global, unscaled, before clipping
  bool skipped = false;      // a gradient was not finite: nothing was changed
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

class Optimizer {
 public:
  // Throws invalid_input: an option out of range, a name or memory twice, a pattern that fits no parameter, a weight
  // that is not floating or not contiguous. With `offload`, a folder, states lie in a file there and are read and
  // written a stretch ahead of the updates, and weights that lie in a file leave the memory behind them; throws what
  // OffloadFile throws, unsupported where weights are not on the CPU.
  Optimizer(std::vector<Parameter> parameters, const OptimizerOptions& options,
            const std::vector<ParameterGroup>& groups = {}, const std::string& offload = {});

  // `gradients` in the order of the parameters; undefined where there is none: that weight stays. A sparse gradient
  // (COO over the rows, as embeddings give) changes the rows that it names alone, states too, as SparseAdam does.
  // Throws invalid_input when sizes do not fit, unsupported for a sparse gradient with Adafactor or byte states.
  StepResult step(const std::vector<at::Tensor>& gradients, const StepOptions& options = {});
  // The same for one parameter of that order alone, whose gradient is there before the others; without clipping, for
  // which all are needed. Returns the norm of the gradient, unscaled; where it is not finite nothing was changed.
  double update(size_t parameter, const at::Tensor& gradient, const StepOptions& options);
  // Takes the memory of all states, which updates do otherwise.
  void reserve_states();

  // "fc.weight/exp_avg", "fc.weight/step", ...: only what steps have made. They are the states themselves, not copies.
  NamedTensors state() const;
  // Copies from what state() gave for the same parameters and options. Throws invalid_input for an unknown name, other
  // sizes or another dtype, or a missing one; then nothing is changed.
  void restore_state(const NamedTensors& state);

 private:
  struct Trained {
    Parameter parameter;
    double lr_factor = 1, weight_decay = 0;
    bool frozen = false;
    int64_t steps = 0;
    std::vector<at::Tensor> states;  // empty before the first step
    ByteRange place;                 // of the states in the file
  };
  // Parameters that are updated together, and their states in the file.
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
  std::shared_ptr<const OffloadFile> file_;  // null: states lie in memory
};

}  // namespace lissome
