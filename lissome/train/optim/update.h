// One update of one weight, for optimizer.cpp: the factors of a step, and how they are applied.
#pragma once

#include <span>
#include <string_view>

#include "lissome/kernel.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

// Where and when an update happens.
struct UpdateMoment {
  int64_t step = 1;  // of this weight, from 1
  double lr = 0, weight_decay = 0, gradient_scale = 1;
  std::optional<double> momentum;
  bool sparse = false;  // rows alone: where epsilon stands differs in SparseAdam
};

struct UpdateTensors {
  at::Tensor weight, gradient, bf16_copy;
  std::vector<at::Tensor> states;
};

using UpdateCall = std::variant<AdamCall, SgdCall, LionCall, Adam8BitCall>;

// What states a weight has: PyTorch's names, with "_scale" for the scales of bytes.
struct StateForm {
  std::string_view name;
  std::vector<int64_t> sizes;
  at::ScalarType dtype;
};
std::vector<StateForm> list_states(const OptimizerOptions& options, const at::Tensor& weight);
int64_t count_state_bytes(const OptimizerOptions& options, const at::Tensor& weight);
bool has_byte_states(const OptimizerOptions& options, const at::Tensor& weight);

// The factors; pointers are still null. Adafactor has no call.
UpdateCall make_update(const OptimizerOptions& options, const UpdateMoment& moment, bool byte_states);
// Whether the kernels can do it: f32, contiguous, in main memory.
bool fits_kernels(const at::Tensor& tensor);
void point_at(UpdateCall& call, const UpdateTensors& tensors);
std::string_view kernel_name(const UpdateCall& call);
// The same update by ATen's ops, for any floating dtype and device.
void update_by_ops(const UpdateCall& call, const UpdateTensors& tensors);
void update_adafactor(const Adafactor& options, const UpdateMoment& moment, const UpdateTensors& tensors);

// Parts of kernel calls, run over ATen's threads as one parallel region.
struct KernelJob {
  KernelFunction function;
  const void* call;
  int part, parts;
};
void add_jobs(std::vector<KernelJob>& jobs, std::string_view kernel, const void* call, int64_t count);
void run_jobs(const std::vector<KernelJob>& jobs);

// The sum of squares of all elements, in f64; finite exactly when they all are.
double sum_all_squares(std::span<const at::Tensor> gradients);

}  // namespace lissome
