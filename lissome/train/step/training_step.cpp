// See training_step.h.
#include "lissome/train/step/training_step.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/random.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "lissome/differentiate.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/train/budget/transfer_rate.h"
#include "lissome/train/remat/offload_weights.h"
#include "lissome/train/rewrite/count_dropout.h"
#include "lissome/train/rewrite/lift_weights.h"
#include "lissome/train/rewrite/repeat_copies.h"
#include "lissome/train/rewrite/synchronize_batch_norm.h"
#include "lissome/train/rewrite/training_passes.h"

namespace lissome {
namespace {

// Tied parameters count as one: their gradients are summed under the first name of the storage.
std::vector<std::string> list_trainable(const Program& program) {
  std::vector<std::string> names;
  std::unordered_set<const void*> seen;
  for (const Weight& weight : program.weights) {
    if (weight.role != WeightRole::parameter || !weight.tensor.is_floating_point()) continue;
    if (seen.insert(weight.tensor.const_data_ptr()).second) names.push_back(weight.name);
  }
  if (names.empty())
    throw_error(ErrorKind::invalid_input,
                "the model has no parameters to train: each is frozen, has requires_grad off or holds no real numbers");
  return names;
}

// Takes the first kernels that accept. Timing kernels one by one gives no better plan, because it does not see the
// moves and the held memory that libtorch's convolutions force on their neighbours.
Plan lower_step(const Program& program, int threads) {
  LowerOptions lower;
  lower.effort = Effort::fast;
  lower.threads = threads;
  lower.dense_outputs = false;  // optimizers read gradients in any order
  return lower_program(program, lower);
}

// Of a program with gradients. PyTorch refuses such a backward pass too.
void require_gradients(const Program& program, size_t parameters) {
  LISSOME_CHECK(program.outputs.size() >= parameters, "fewer outputs than gradients");
  const auto first = program.outputs.end() - static_cast<std::ptrdiff_t>(parameters);
  if (std::all_of(first, program.outputs.end(), [](const ProgramOutput& output) { return output.value.is_none(); }))
    throw_error(
        ErrorKind::invalid_input,
        "the loss has no gradient for any parameter, so nothing would be learned: it does not depend on them, or "
        "only through what has no gradient (argmax, comparisons, detach(), torch.no_grad())");
}

Program keep_loss(Program program) {
  program.outputs.erase(program.outputs.begin() + 1, program.outputs.end());
  return program;
}

int choose_threads(const Plan& plan, const TrainingStepOptions& options) {
  return options.threads > 0 ? options.threads : plan.machine.threads;
}

TensorView view_of(const at::Tensor& tensor) {
  LISSOME_CHECK(tensor.is_contiguous(), "a tensor of sizes ", format_sizes(tensor.sizes().vec()), " is not dense");
  return {dtype_of(tensor.scalar_type()), tensor.sizes().vec(), tensor.strides().vec(), tensor.data_ptr()};
}

// An undefined tensor if there is no array.
at::Tensor share(const Array& array) {
  if (!array.storage) return {};
  return at::from_blob(array.storage.get(), array.sizes, [kept = array.storage](void*) {}, scalar_type_of(array.dtype));
}

}  // namespace

TrainingStep::TrainingStep(const Program& program, const std::vector<at::Tensor>& examples,
                           const TrainingStepOptions& options)
    : names_(list_trainable(program)) {
  const auto run_stage = [&](TrainingStage stage, Program& to) {
    run_training_passes(stage, to, options.disabled_passes, passes_);
  };
  check_training_passes(options.disabled_passes);
  Program recorded = options.outputs ? program : keep_loss(program);
  run_stage(TrainingStage::recorded, recorded);
  if (options.synchronize_batch_norm)
    passes_.push_back(run_watched(kSynchronizePass, recorded, synchronize_batch_norm,
                                  [&](const Program&) { verify_program(recorded, Stage::imported); }));
  program_ = differentiate_program(recorded, names_, examples);
  require_gradients(program_, names_.size());
  Lifted lifted = lift_weights(program_);
  lent_ = std::move(lifted.weights);
  written_ = std::move(lifted.written);
  run_stage(TrainingStage::joint, lifted.program);
  if (reads_dropout_seed(lifted.program)) lent_.push_back(seed_.emplace(at::zeros({}, at::kLong)));
  run_pipeline(lifted.program);
  run_stage(TrainingStage::lowered, lifted.program);
  if (options.budget) run_stage(TrainingStage::budget, lifted.program);
  const auto finish = [&](Plan& plan) {
    if (options.gradients_leave != GradientsLeave::after_step) let_gradients_leave(plan, options.gradients_leave);
  };
  Plan plan = lower_step(lifted.program, options.threads);
  finish(plan);
  if (options.budget) {
    const StepSource source{&lifted.program, &plan, choose_threads(plan, options)};
    const auto lower = [&](const Program& scheduled) {
      Plan made = lower_step(scheduled, options.threads);
      repeat_copies(made);
      finish(made);
      return made;
    };
    BudgetedPlan fitted = plan_within_budget(source, examples, lent_, *options.budget, lower);
    forecast_ = fitted.forecast;
    plan = std::move(fitted.plan);
    streamed_ = options.budget->weights;
    // Both the forward and the backward pass read it.
    if (streams_weights())
      forecast_->seconds =
          measure_folder(options.budget->offload_folder).predict(forecast_->seconds, 2 * streamed_.bytes);
  }
  SessionOptions session;
  session.threads = options.threads;
  if (options.budget) session.offload_folder = options.budget->offload_folder;
  session_ = std::make_unique<Session>(std::make_shared<Plan>(std::move(plan)), session);
}

// A tied weight is passed under each of its names.
void TrainingStep::let_gradients_leave(Plan& plan, GradientsLeave when) const {
  const size_t first_output = plan.outputs.size() - written_.size() - names_.size();
  const size_t first_input = plan.inputs.size() - lent_.size();
  std::vector<EarlyOutput> early;
  for (size_t i = 0; i < names_.size(); ++i) {
    const at::Tensor& weight = program_.find_weight(names_[i])->tensor;
    EarlyOutput& output = early.emplace_back(EarlyOutput{first_output + i, {}});
    for (size_t k = 0; when == GradientsLeave::for_update && k < lent_.size(); ++k) {
      if (lent_[k].is_alias_of(weight)) output.inputs.push_back(first_input + k);
    }
  }
  let_leave_early(plan, early);
}

std::vector<size_t> TrainingStep::list_completion() const {
  const std::vector<PlanOutput>& outputs = session_->plan().outputs;
  const size_t first = outputs.size() - written_.size() - names_.size();
  std::vector<size_t> order(names_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto leaves = [&](size_t index) {
    const int after = outputs[first + index].leaves_after;
    return after < 0 ? std::numeric_limits<int>::max() : after;
  };
  std::ranges::stable_sort(order, {}, leaves);
  return order;
}

// Weights may have been moved into or out of the file since the last run.
void TrainingStep::stream_weights() {
  if (!streams_weights()) return;
  const size_t first_input = session_->plan().inputs.size() - lent_.size();
  std::vector<size_t> streaming;
  for (size_t i = 0; i < lent_.size(); ++i) {
    if (is_offloaded(lent_[i])) streaming.push_back(first_input + i);
  }
  if (streaming == streaming_) return;
  session_->stream_inputs(streaming, streamed_.at_once);
  streaming_ = std::move(streaming);
}

void TrainingStep::forget_results() { sizes_.clear(), results_.clear(), gradients_.clear(), outputs_.clear(); }

void TrainingStep::release_memory() {
  forget_results();
  session_->release_memory();
}

void TrainingStep::run_into_kept(const std::vector<TensorView>& views, const StepSink* sink, const OutputTaker* taker) {
  std::vector<Sizes> sizes;
  for (const TensorView& view : views) sizes.push_back(view.sizes);
  if (sizes == sizes_) {
    std::vector<TensorView> places;
    for (const Array& output : outputs_) places.push_back(output.view());
    session_->run_into(views, places, sink, taker);
    return;
  }
  forget_results();  // memory need not hold two sets of gradients
  outputs_ = session_->run(views, sink, taker);
  sizes_ = std::move(sizes);
  for (const Array& output : outputs_) results_.push_back(share(output));
  const auto first_gradient = results_.end() - std::ssize(names_) - std::ssize(written_);
  gradients_.assign(first_gradient, first_gradient + std::ssize(names_));
}

MemoryTimeline TrainingStep::trace_arena(const std::vector<at::Tensor>& inputs) const {
  std::vector<Sizes> sizes;
  for (const at::Tensor& input : inputs) sizes.push_back(input.sizes().vec());
  for (const at::Tensor& tensor : lent_) sizes.push_back(tensor.sizes().vec());
  return lissome::trace_arena(session_->plan(), sizes, session_->threads());
}

std::vector<at::Tensor> TrainingStep::run(const std::vector<at::Tensor>& inputs, const StepSink* sink,
                                          const GradientTaker* taker) {
  std::vector<at::Tensor> dense;
  for (const at::Tensor& input : inputs) dense.push_back(input.contiguous());
  std::vector<TensorView> views;
  for (const at::Tensor& input : dense) views.push_back(view_of(input));
  stream_weights();
  if (seed_) seed_->random_();
  for (const at::Tensor& tensor : lent_) views.push_back(view_of(tensor));
  const size_t first_gradient = session_->plan().outputs.size() - written_.size() - names_.size();
  const OutputTaker give = [&](size_t output, const TensorView& view) {
    (*taker)(output - first_gradient, at::from_blob(view.data, view.sizes, view.strides, scalar_type_of(view.dtype)));
  };
  run_into_kept(views, sink, taker != nullptr ? &give : nullptr);
  const size_t first_written = results_.size() - written_.size();
  for (size_t i = 0; i < written_.size(); ++i) written_[i].detach().copy_(results_[first_written + i]);
  return {results_.begin(), results_.end() - std::ssize(names_) - std::ssize(written_)};
}

}  // namespace lissome
