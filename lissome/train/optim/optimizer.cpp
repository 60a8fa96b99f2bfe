#include "lissome/train/optim/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "lissome/base.h"
#include "lissome/program.h"
#include "lissome/train/optim/update.h"
#include "lissome/train/remat/offload_weights.h"

namespace lissome {
namespace {

void check_optimizer_option(bool holds, std::string_view rule, double seen) {
  if (!holds) throw_error(ErrorKind::invalid_input, "optimizer: ", rule, ", not ", seen);
}

void check_betas(double beta1, double beta2) {
  check_optimizer_option(beta1 >= 0 && beta1 < 1, "beta1 must be at least 0 and below 1", beta1);
  check_optimizer_option(beta2 >= 0 && beta2 < 1, "beta2 must be at least 0 and below 1", beta2);
}

void check_own(const Lion& options) { check_betas(options.beta1, options.beta2); }
void check_own(const Sgd& options) {
  check_optimizer_option(options.momentum >= 0, "momentum must be at least 0", options.momentum);
  check_optimizer_option(!options.nesterov || options.momentum > 0, "nesterov needs a momentum above 0",
                         options.momentum);
  check_optimizer_option(!options.nesterov || options.dampening == 0, "nesterov needs a dampening of 0",
                         options.dampening);
}
void check_own(const Adafactor& options) {
  check_optimizer_option(options.beta2_decay <= 0, "beta2_decay must be at most 0", options.beta2_decay);
  check_optimizer_option(options.eps1 >= 0 && options.eps2 >= 0, "eps1 and eps2 must be at least 0",
                         std::min(options.eps1, options.eps2));
  check_optimizer_option(options.d >= 1, "d must be at least 1", options.d);
}
void check_own(const auto& adam) {
  check_betas(adam.beta1, adam.beta2);
  check_optimizer_option(adam.eps >= 0, "eps must be at least 0", adam.eps);
}

void check_options(const OptimizerOptions& options) {
  std::visit(
      [](const auto& own) {
        check_optimizer_option(own.lr >= 0, "lr must be at least 0", own.lr);
        check_optimizer_option(own.weight_decay >= 0, "weight_decay must be at least 0", own.weight_decay);
        check_own(own);
      },
      options);
}

void check_parameter(const Parameter& parameter) {
  const at::Tensor &weight = parameter.weight, &copy = parameter.bf16_copy;
  if (!weight.defined() || !weight.is_floating_point() || !weight.is_contiguous()) {
    throw_error(ErrorKind::invalid_input, "optimizer: the weight ", quote(parameter.name),
                " is not a contiguous tensor of floating-point numbers");
  }
  if (copy.defined() && (copy.scalar_type() != at::kBFloat16 || copy.sizes() != weight.sizes() ||
                         copy.device() != weight.device() || !copy.is_contiguous())) {
    throw_error(ErrorKind::invalid_input, "optimizer: the bf16 copy of ", quote(parameter.name),
                " is not contiguous bf16 of the sizes and on the device of its weight");
  }
}

// The gradient in the dtype of its weight and contiguous; a sparse one with every row listed once.
at::Tensor prepare_gradient(const at::Tensor& gradient, const Parameter& parameter) {
  const at::Tensor& weight = parameter.weight;
  if (gradient.sizes() != weight.sizes()) {
    throw_error(ErrorKind::invalid_input, "optimizer: the gradient of ", quote(parameter.name), " has sizes ",
                format_sizes(gradient.sizes().vec()), ", the weight ", format_sizes(weight.sizes().vec()));
  }
  const at::Tensor cast = gradient.to(weight.options().layout(gradient.layout()));
  if (!gradient.is_sparse()) return cast.contiguous();
  if (gradient.sparse_dim() != 1) {
    throw_error(ErrorKind::unsupported, "optimizer: the sparse gradient of ", quote(parameter.name), " has ",
                gradient.sparse_dim(), " sparse dimensions; one is allowed, as embeddings give");
  }
  return cast.coalesce();
}

at::Tensor values_of(const at::Tensor& gradient) {
  return gradient.is_sparse() ? gradient.values().contiguous() : gradient;
}

// Copies the rows of a sparse gradient into tensors of their own; put_rows() writes them back.
UpdateTensors take_rows(const UpdateTensors& whole) {
  const at::Tensor rows = whole.gradient.indices()[0];
  UpdateTensors taken = {whole.weight.index_select(0, rows), values_of(whole.gradient), {}, {}};
  for (const at::Tensor& state : whole.states) taken.states.push_back(state.index_select(0, rows));
  return taken;
}

void put_rows(const UpdateTensors& taken, const UpdateTensors& whole) {
  const at::Tensor rows = whole.gradient.indices()[0];
  whole.weight.index_copy_(0, rows, taken.weight);
  if (whole.bf16_copy.defined()) whole.bf16_copy.index_copy_(0, rows, taken.weight.to(at::kBFloat16));
  for (size_t i = 0; i < taken.states.size(); ++i) whole.states[i].index_copy_(0, rows, taken.states[i]);
}

constexpr int64_t kStretchBytes =
    32 << 20;  // bytes of states, and of weights, in one stretch; two stretches are in memory at once
constexpr int64_t kAlignment = 64;

// Bytes of a state in the file, rounded up to the alignment of kernels.
int64_t count_bytes(const StateForm& form) {
  const int64_t bytes = count_elements(form.sizes) * static_cast<int64_t>(c10::elementSize(form.dtype));
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

at::TensorOptions state_options(const at::Tensor& weight, const StateForm& form) {
  return weight.options().requires_grad(false).dtype(form.dtype);
}

}  // namespace

Optimizer::Optimizer(std::vector<Parameter> parameters, const OptimizerOptions& options,
                     const std::vector<ParameterGroup>& groups, const std::string& offload)
    : options_(options) {
  check_options(options);
  const double weight_decay = std::visit([](const auto& own) { return own.weight_decay; }, options);
  std::set<std::string> names;
  std::set<const void*> memory;
  std::vector<bool> fitted(groups.size());
  for (Parameter& parameter : parameters) {
    check_parameter(parameter);
    if (!names.insert(parameter.name).second) {
      throw_error(ErrorKind::invalid_input, "optimizer: there are two parameters named ", quote(parameter.name));
    }
    if (parameter.weight.numel() > 0 && !memory.insert(parameter.weight.data_ptr()).second) {
      throw_error(ErrorKind::invalid_input, "optimizer: ", quote(parameter.name),
                  " is tied to a parameter before it; give tied weights once, with the sum of their gradients");
    }
    Trained trained{.parameter = std::move(parameter), .weight_decay = weight_decay, .states = {}};
    bool placed = false;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (!matches_pattern(groups[i].pattern, trained.parameter.name)) continue;
      fitted[i] = true;
      if (std::exchange(placed, true)) continue;
      trained.lr_factor = groups[i].lr_factor;
      trained.weight_decay = groups[i].weight_decay.value_or(weight_decay);
      trained.frozen = groups[i].frozen;
    }
    trained_.push_back(std::move(trained));
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (fitted[i]) continue;
    throw_error(ErrorKind::invalid_input, "optimizer: no parameter matches the pattern ", quote(groups[i].pattern),
                "; the first is named ", quote(names.empty() ? "" : *names.begin()));
  }
  plan_stretches(offload);
}

void Optimizer::plan_stretches(const std::string& offload) {
  if (offload.empty()) {
    stretches_ = {{0, trained_.size(), {}}};
    return;
  }
  int64_t offset = 0, offloaded = 0;  // of states in the file; bytes of the stretch's weights that are offloaded
  for (size_t i = 0; i < trained_.size(); ++i) {
    Trained& trained = trained_[i];
    if (!trained.parameter.weight.is_cpu())
      throw_error(ErrorKind::unsupported, "optimizer: states can be offloaded only for weights on the CPU, and ",
                  quote(trained.parameter.name), " is on another device");
    const at::Tensor& weight = trained.parameter.weight;
    const int64_t more = is_offloaded(weight) ? static_cast<int64_t>(weight.nbytes()) : 0;
    if (stretches_.empty() || offset - stretches_.back().bytes.begin >= kStretchBytes ||
        offloaded + more > kStretchBytes) {
      stretches_.push_back({i, i, {offset, offset}});
      offloaded = 0;
    }
    offloaded += more;
    trained.place.begin = offset;
    for (const StateForm& form : list_states(options_, trained.parameter.weight)) offset += count_bytes(form);
    trained.place.end = offset;
    stretches_.back().last = i + 1, stretches_.back().bytes.end = offset;
  }
  file_ = std::make_shared<const OffloadFile>(offload, offset);
}

// New states, filled with zeros.
std::vector<at::Tensor> Optimizer::make_states(const Trained& trained) const {
  std::vector<at::Tensor> states;
  int64_t offset = trained.place.begin;
  for (const StateForm& form : list_states(options_, trained.parameter.weight)) {
    const at::TensorOptions options = state_options(trained.parameter.weight, form);
    states.push_back(file_ ? at::from_blob(
                                 file_->data() + offset, form.sizes, [kept = file_](void*) {}, options)
                           : at::zeros(form.sizes, options));
    offset += count_bytes(form);
  }
  return states;
}

// Undefined if the parameter is not updated.
at::Tensor Optimizer::prepare(const Trained& trained, const at::Tensor& gradient) const {
  if (!gradient.defined() || trained.frozen || gradient.numel() == 0) return {};
  const bool dense_only =
      std::holds_alternative<Adafactor>(options_) || has_8bit_states(options_, trained.parameter.weight);
  if (gradient.is_sparse() && dense_only) {
    throw_error(ErrorKind::unsupported,
                "optimizer: Adafactor and 8-bit states take no sparse gradients, and the gradient of ",
                quote(trained.parameter.name), " is sparse");
  }
  return prepare_gradient(gradient, trained.parameter);
}

StepResult Optimizer::step(const std::vector<at::Tensor>& gradients, const StepOptions& options) {
  const at::NoGradGuard no_gradients;
  if (gradients.size() != trained_.size()) {
    throw_error(ErrorKind::invalid_input, "optimizer: ", gradients.size(), " gradients for ", trained_.size(),
                " parameters; an undefined tensor stands for none");
  }
  std::vector<at::Tensor> prepared(gradients.size()), values;
  for (size_t i = 0; i < gradients.size(); ++i) {
    prepared[i] = prepare(trained_[i], gradients[i]);
    if (prepared[i].defined()) values.push_back(values_of(prepared[i]));
  }
  StepResult result;
  result.gradient_norm = std::sqrt(sum_all_squares(values)) / options.loss_scale;
  result.skipped = !std::isfinite(result.gradient_norm);
  if (result.skipped) return result;
  double scale = 1 / options.loss_scale;
  if (options.clip_norm > 0) scale *= std::min(1.0, options.clip_norm / (result.gradient_norm + 1e-6));
  update_all(prepared, options, scale);
  return result;
}

double Optimizer::update(size_t parameter, const at::Tensor& gradient, const StepOptions& options) {
  LISSOME_CHECK(options.clip_norm == 0, "one gradient alone cannot be clipped to a global norm");
  const at::NoGradGuard no_gradients;
  const Trained& trained = trained_.at(parameter);
  const at::Tensor prepared = prepare(trained, gradient);
  if (!prepared.defined()) return 0;
  const at::Tensor values = values_of(prepared);
  const double norm = std::sqrt(sum_all_squares({&values, 1})) / options.loss_scale;
  if (!std::isfinite(norm)) return norm;
  // Backward passes usually reach parameters from the last to the first.
  if (file_) file_->fetch(trained.place);
  if (file_ && parameter > 0) file_->fetch(trained_[parameter - 1].place);
  update_some(parameter, {&prepared, 1}, options, 1 / options.loss_scale);
  if (file_) file_->release(trained.place);
  release_weight(trained.parameter.weight);
  return norm;
}

void Optimizer::reserve_states() {
  const at::NoGradGuard no_gradients;
  for (Trained& trained : trained_) {
    if (trained.states.empty() && !trained.frozen) trained.states = make_states(trained);
  }
}

void Optimizer::update_all(std::span<const at::Tensor> gradients, const StepOptions& options, double gradient_scale) {
  for (size_t i = 0; i < stretches_.size(); ++i) {
    const Stretch& stretch = stretches_[i];
    if (file_ && i == 0) fetch(stretch);
    if (file_ && i + 1 < stretches_.size()) fetch(stretches_[i + 1]);
    update_some(stretch.first, gradients.subspan(stretch.first, stretch.last - stretch.first), options, gradient_scale);
    if (file_) file_->release(stretch.bytes);
    for (size_t k = stretch.first; k < stretch.last; ++k) release_weight(trained_[k].parameter.weight);
  }
}

// Starts to read states and weights of a stretch ahead of its updates.
void Optimizer::fetch(const Stretch& stretch) const {
  file_->fetch(stretch.bytes);
  for (size_t i = stretch.first; i < stretch.last; ++i) fetch_weight(trained_[i].parameter.weight);
}

// Updates the parameters from `first` on, one for each gradient.
void Optimizer::update_some(size_t first, std::span<const at::Tensor> gradients, const StepOptions& options,
                            double gradient_scale) {
  const double lr = options.lr.value_or(std::visit([](const auto& own) { return own.lr; }, options_));
  std::deque<UpdateCall> calls;
  std::vector<KernelJob> jobs;
  std::vector<std::pair<UpdateTensors, UpdateTensors>> rows;  // taken, whole
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    Trained& trained = trained_[first + i];
    if (trained.states.empty()) trained.states = make_states(trained);
    const UpdateMoment moment = {++trained.steps, lr * trained.lr_factor, trained.weight_decay,
                                 gradient_scale,  options.momentum,       gradients[i].is_sparse()};
    UpdateTensors tensors = {trained.parameter.weight, gradients[i], trained.parameter.bf16_copy, trained.states};
    if (const auto* adafactor = std::get_if<Adafactor>(&options_)) {
      update_adafactor(*adafactor, moment, tensors);
      continue;
    }
    if (moment.sparse) {
      rows.emplace_back(take_rows(tensors), tensors);
      tensors = rows.back().first;
    }
    calls.push_back(make_update(options_, moment, has_8bit_states(options_, trained.parameter.weight)));
    if (!fits_kernels(tensors.weight)) {
      update_by_ops(calls.back(), tensors);
      continue;
    }
    point_at(calls.back(), tensors);
    const void* call = std::visit([](const auto& own) -> const void* { return &own; }, calls.back());
    add_jobs(jobs, kernel_name(calls.back()), call, tensors.weight.numel());
  }
  run_jobs(jobs);
  for (const auto& [taken, whole] : rows) put_rows(taken, whole);
}

NamedTensors Optimizer::state() const {
  NamedTensors state;
  for (const Trained& trained : trained_) {
    if (trained.steps == 0) continue;
    const auto forms = list_states(options_, trained.parameter.weight);
    for (size_t i = 0; i < forms.size(); ++i) {
      state.emplace_back(trained.parameter.name + "/" + std::string(forms[i].name), trained.states[i]);
    }
    state.emplace_back(trained.parameter.name + "/step", at::zeros({}, at::kLong).fill_(trained.steps));
  }
  return state;
}

// As many steps as a double counts exactly.
constexpr int64_t kMostSteps = int64_t{1} << 53;

void Optimizer::restore_state(const NamedTensors& state) {
  std::set<std::string> unread;
  for (const auto& [name, tensor] : state) unread.insert(name);
  const auto take = [&](const std::string& name, at::IntArrayRef sizes, at::ScalarType dtype) {
    const auto at = std::find_if(state.begin(), state.end(), [&](const auto& item) { return item.first == name; });
    if (at == state.end()) throw_error(ErrorKind::invalid_input, "the optimizer's state lacks ", quote(name));
    const at::Tensor& tensor = at->second;
    if (tensor.sizes() != sizes || tensor.scalar_type() != dtype) {
      throw_error(ErrorKind::invalid_input, "the optimizer's state ", quote(name), " is ",
                  dtype_name(dtype_of(tensor.scalar_type())), format_sizes(tensor.sizes().vec()), ", not ",
                  dtype_name(dtype_of(dtype)), format_sizes(sizes.vec()));
    }
    unread.erase(name);
    return tensor;
  };
  const at::NoGradGuard no_gradients;
  std::vector<Trained> restored = trained_;
  for (Trained& trained : restored) {
    const at::Tensor& weight = trained.parameter.weight;
    trained.states.clear();
    trained.steps = 0;
    if (!unread.contains(trained.parameter.name + "/step")) continue;  // the parameter had no gradient yet
    trained.steps = take(trained.parameter.name + "/step", {}, at::kLong).item<int64_t>();
    if (trained.steps < 0 || trained.steps > kMostSteps)
      throw_error(ErrorKind::invalid_input, "the optimizer's state ", quote(trained.parameter.name + "/step"), " is ",
                  trained.steps, ", which is not a count of steps");
    for (const StateForm& form : list_states(options_, weight)) {
      const std::string name = trained.parameter.name + "/" + std::string(form.name);
      trained.states.push_back(take(name, form.sizes, form.dtype));
    }
  }
  if (!unread.empty()) {
    throw_error(ErrorKind::invalid_input, "the optimizer's state ", quote(*unread.begin()),
                " belongs to no parameter of this optimizer");
  }
  for (Trained& trained : restored) {
    if (trained.steps == 0) continue;
    const std::vector<at::Tensor> states = make_states(trained);
    for (size_t i = 0; i < states.size(); ++i) states[i].copy_(trained.states[i]);
    trained.states = states;
  }
  trained_ = std::move(restored);
}

}  // namespace lissome
