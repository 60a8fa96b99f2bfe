#include "lissome/train/optim/update.h"

#include <ATen/Parallel.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>
#include <deque>

namespace lissome {
namespace {

constexpr int64_t kElementsPerJob = 65536;
constexpr int64_t kLeast8BitElements = 4096;  // 8-bit states of smaller weights save too little

// For AdamW and Adam: dividing by 1 - beta^step corrects moments that began at zero.
AdamCall correct_moments(double lr, double beta1, double beta2, double eps, const UpdateMoment& moment) {
  const double step = static_cast<double>(moment.step);
  AdamCall call;
  call.on.gradient_scale = moment.gradient_scale;
  call.beta1 = moment.momentum.value_or(beta1), call.beta2 = beta2;
  call.step_size = lr / (1 - std::pow(call.beta1, step));
  call.square_factor = 1 / std::sqrt(1 - std::pow(beta2, step));
  call.epsilon = moment.sparse ? eps * call.square_factor : eps;
  return call;
}

UpdateCall make(const AdamW& options, const UpdateMoment& moment) {
  AdamCall call = correct_moments(moment.lr, options.beta1, options.beta2, options.eps, moment);
  call.weight_factor = 1 - moment.lr * moment.weight_decay;
  return call;
}

UpdateCall make(const Adam& options, const UpdateMoment& moment) {
  AdamCall call = correct_moments(moment.lr, options.beta1, options.beta2, options.eps, moment);
  call.gradient_decay = moment.weight_decay;
  return call;
}

UpdateCall make(const Sgd& options, const UpdateMoment& moment) {
  SgdCall call;
  call.on.gradient_scale = moment.gradient_scale;
  call.gradient_decay = moment.weight_decay, call.learning_rate = moment.lr;
  // The first momentum is the gradient itself, whatever the dampening.
  const double momentum = moment.momentum.value_or(options.momentum);
  call.keep = momentum, call.take = moment.step == 1 ? 1 : 1 - options.dampening;
  call.gradient_share = options.nesterov ? 1 : 0;
  call.momentum_share = options.nesterov ? momentum : 1;
  return call;
}

UpdateCall make(const Lion& options, const UpdateMoment& moment) {
  LionCall call;
  call.on.gradient_scale = moment.gradient_scale;
  call.weight_factor = 1 - moment.lr * moment.weight_decay;
  call.beta1 = moment.momentum.value_or(options.beta1), call.beta2 = options.beta2;
  call.learning_rate = moment.lr;
  return call;
}

UpdateCall make(const Adafactor&, const UpdateMoment&) { LISSOME_CHECK(false, "Adafactor has passes of its own"); }

void apply(const AdamCall& call, const at::Tensor& weight, at::Tensor g, const std::vector<at::Tensor>& states) {
  if (call.gradient_decay != 0) g.add_(weight, call.gradient_decay);
  const at::Tensor &mean = states[0], &square = states[1];
  mean.lerp_(g, 1 - call.beta1);
  square.mul_(call.beta2).addcmul_(g, g, 1 - call.beta2);
  weight.mul_(call.weight_factor);
  weight.addcdiv_(mean, square.sqrt().mul_(call.square_factor).add_(call.epsilon), -call.step_size);
}

void apply(const SgdCall& call, const at::Tensor& weight, at::Tensor g, const std::vector<at::Tensor>& states) {
  if (call.gradient_decay != 0) g.add_(weight, call.gradient_decay);
  if (!states.empty()) {
    const at::Tensor& momentum = states[0];
    momentum.mul_(call.keep).add_(g, call.take);
    g = g.mul_(call.gradient_share).add_(momentum, call.momentum_share);
  }
  weight.sub_(g, call.learning_rate);
}

void apply(const LionCall& call, const at::Tensor& weight, at::Tensor g, const std::vector<at::Tensor>& states) {
  const at::Tensor& mean = states[0];
  const at::Tensor direction = mean.lerp(g, 1 - call.beta1).sign_();
  mean.lerp_(g, 1 - call.beta2);
  weight.mul_(call.weight_factor).sub_(direction, call.learning_rate);
}

UpdatedWeight& find_weight(auto& call) { return call.on; }
UpdatedWeight& find_weight(Adam8BitCall& call) { return call.adam.on; }

void point_states(AdamCall& call, const std::vector<at::Tensor>& states) {
  call.mean = states[0].data_ptr<float>(), call.square = states[1].data_ptr<float>();
}
void point_states(SgdCall& call, const std::vector<at::Tensor>& states) {
  call.momentum = states.empty() ? nullptr : states[0].data_ptr<float>();
}
void point_states(Adam8BitCall& call, const std::vector<at::Tensor>& states) {
  call.mean = states[0].data_ptr<uint8_t>(), call.mean_scale = states[1].data_ptr<float>();
  call.square = states[2].data_ptr<uint8_t>(), call.square_scale = states[3].data_ptr<float>();
}
void point_states(LionCall& call, const std::vector<at::Tensor>& states) { call.mean = states[0].data_ptr<float>(); }

}  // namespace

bool has_8bit_states(const OptimizerOptions& options, const at::Tensor& weight) {
  const bool asked = std::visit(
      [](const auto& own) {
        if constexpr (requires { own.states_8bit; }) return own.states_8bit;
        return false;
      },
      options);
  return asked && fits_kernels(weight) && weight.numel() >= kLeast8BitElements;
}

std::vector<StateForm> list_states(const OptimizerOptions& options, const at::Tensor& weight) {
  const std::vector<int64_t> sizes = weight.sizes().vec();
  const at::ScalarType dtype = weight.scalar_type();
  if (has_8bit_states(options, weight)) {
    const std::vector<int64_t> blocks = {(weight.numel() + kByteBlock - 1) / kByteBlock};
    return {{"exp_avg", sizes, at::kByte},
            {"exp_avg_scale", blocks, at::kFloat},
            {"exp_avg_sq", sizes, at::kByte},
            {"exp_avg_sq_scale", blocks, at::kFloat}};
  }
  if (std::holds_alternative<AdamW>(options) || std::holds_alternative<Adam>(options)) {
    return {{"exp_avg", sizes, dtype}, {"exp_avg_sq", sizes, dtype}};
  }
  if (std::holds_alternative<Lion>(options)) return {{"exp_avg", sizes, dtype}};
  if (const auto* sgd = std::get_if<Sgd>(&options)) {
    if (sgd->momentum == 0) return {};
    return {{"momentum_buffer", sizes, dtype}};
  }
  if (sizes.size() < 2) return {{"variance", sizes, dtype}};
  std::vector<int64_t> row = sizes, column = sizes;
  row.back() = 1, column[column.size() - 2] = 1;
  return {{"row_var", row, dtype}, {"col_var", column, dtype}};
}

int64_t count_state_bytes(const OptimizerOptions& options, const at::Tensor& weight) {
  int64_t bytes = 0;
  for (const StateForm& form : list_states(options, weight))
    bytes += count_elements(form.sizes) * static_cast<int64_t>(c10::elementSize(form.dtype));
  return bytes;
}

int64_t count_update_bytes(const OptimizerOptions& options, const at::Tensor& weight) {
  const bool factors = std::holds_alternative<Adafactor>(options);
  if (!factors && fits_kernels(weight)) return 0;
  // The scaled gradient and the update; Adafactor has the means of this step beside its factors, too.
  const auto bytes = static_cast<int64_t>(weight.numel() * weight.element_size());
  return 2 * bytes + (factors ? 2 * count_state_bytes(options, weight) : 0);
}

UpdateCall make_update(const OptimizerOptions& options, const UpdateMoment& moment, bool states_8bit) {
  const UpdateCall call = std::visit([&](const auto& own) { return make(own, moment); }, options);
  if (!states_8bit) return call;
  return Adam8BitCall{.adam = std::get<AdamCall>(call)};
}

bool fits_kernels(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
}

void point_at(UpdateCall& call, const UpdateTensors& tensors) {
  std::visit(
      [&](auto& own) {
        UpdatedWeight& on = find_weight(own);
        on.weight = tensors.weight.data_ptr<float>();
        on.gradient = tensors.gradient.data_ptr<float>();
        on.count = tensors.weight.numel();
        if (tensors.bf16_copy.defined()) on.bf16_copy = static_cast<uint16_t*>(tensors.bf16_copy.data_ptr());
        point_states(own, tensors.states);
      },
      call);
}

std::string_view kernel_name(const UpdateCall& call) {
  constexpr std::string_view kNames[] = {"adam", "sgd", "lion", "adam_8bit"};
  return kNames[call.index()];
}

void update_by_ops(const UpdateCall& call, const UpdateTensors& tensors) {
  std::visit(
      [&]<typename Call>(const Call& own) {
        if constexpr (std::is_same_v<Call, Adam8BitCall>) {
          LISSOME_CHECK(false, "8-bit states are for weights that fit the kernels");
        } else {
          apply(own, tensors.weight, tensors.gradient.mul(own.on.gradient_scale), tensors.states);
        }
      },
      call);
  if (tensors.bf16_copy.defined()) tensors.bf16_copy.copy_(tensors.weight);
}

void add_jobs(std::vector<KernelJob>& jobs, std::string_view kernel, const void* call, int64_t count) {
  const KernelFunction function = find_kernel(kernel).function;
  const int parts = static_cast<int>((count + kElementsPerJob - 1) / kElementsPerJob);
  for (int part = 0; part < parts; ++part) jobs.push_back({function, call, part, parts});
}

void run_jobs(const std::vector<KernelJob>& jobs) {
  at::parallel_for(0, static_cast<int64_t>(jobs.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const KernelJob& job = jobs[static_cast<size_t>(i)];
      job.function(job.call, job.part, job.parts);
    }
  });
}

double sum_all_squares(std::span<const at::Tensor> gradients) {
  double total = 0;
  std::deque<SumSquaresCall> calls;
  std::deque<std::vector<double>> sums;
  std::vector<KernelJob> jobs;
  for (const at::Tensor& gradient : gradients) {
    if (!fits_kernels(gradient)) {
      const double norm = at::linalg_vector_norm(gradient, 2, {}, false, at::kDouble).item<double>();
      total += norm * norm;
      continue;
    }
    const int64_t count = gradient.numel();
    sums.emplace_back(static_cast<size_t>((count + kSquareBlock - 1) / kSquareBlock));
    calls.push_back({gradient.data_ptr<float>(), sums.back().data(), count});
    add_jobs(jobs, "sum_squares", &calls.back(), count);
  }
  run_jobs(jobs);
  for (const std::vector<double>& blocks : sums) {
    for (const double sum : blocks) total += sum;
  }
  return total;
}

}  // namespace lissome
