// One update of one weight, for optimizer.cpp: computes the factors of a step and applies them.
#pragma once

#include <span>
#include <string_view>

#include "lissome/kernel.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

// The step of an update and its rates.
struct UpdateMoment {
  int64_t step = 1;  // updates of this weight, from 1
  double lr = 0, weight_decay = 0, gradient_scale = 1;
  std::optional<double> momentum;
  bool sparse = false;  // only some rows are updated; SparseAdam adds epsilon elsewhere
};

struct UpdateTensors {
  at::Tensor weight, gradient, bf16_copy;
  std::vector<at::Tensor> states;
};

using UpdateCall = std::variant<AdamCall, SgdCall, LionCall, Adam8BitCall>;

// One state of a weight: PyTorch's names, with "_scale" for the scales of 8-bit states.
struct StateForm {
  std::string_view name;
  std::vector<int64_t> sizes;
  at::ScalarType dtype;
};
std::vector<StateForm> list_states(const OptimizerOptions& options, const at::Tensor& weight);
int64_t count_state_bytes(const OptimizerOptions& options, const at::Tensor& weight);
// Of temporary tensors while this weight is updated; 0 where kernels update it in place.
int64_t count_update_bytes(const OptimizerOptions& options, const at::Tensor& weight);
bool has_8bit_states(const OptimizerOptions& options, const at::Tensor& weight);

// Computes the factors; pointers stay null. Adafactor has no call.
UpdateCall make_update(const OptimizerOptions& options, const UpdateMoment& moment, bool states_8bit);
// Whether kernels can update this tensor: contiguous f32 on the CPU.
bool fits_kernels(const at::Tensor& tensor);
void point_at(UpdateCall& call, const UpdateTensors& tensors);
std::string_view kernel_name(const UpdateCall& call);
// Makes the same update by ATen's ops, for any floating dtype and device.
void update_by_ops(const UpdateCall& call, const UpdateTensors& tensors);
void update_adafactor(const Adafactor& options, const UpdateMoment& moment, const UpdateTensors& tensors);

// One part of a kernel call. run_jobs() runs all parts on ATen's threads as one parallel region.
struct KernelJob {
  KernelFunction function;
  const void* call;
  int part, parts;
};
void add_jobs(std::vector<KernelJob>& jobs, std::string_view kernel, const void* call, int64_t count);
void run_jobs(const std::vector<KernelJob>& jobs);

// The sum of squares of all elements in f64. It is finite exactly if all elements are finite.
double sum_all_squares(std::span<const at::Tensor> gradients);

}  // namespace lissome
