// Trains one model at several memory budgets: lissome's side of bench/compare_budget.py.
//   lissome_budget_worker MODEL.pt2 DATA.npz BATCH THREADS ROUNDS SHARE...
// A share is a fraction of the bytes of activations of the step that keeps everything. For each share it prints a line
// of JSON: bytes and time, predicted and measured in turns with the step that keeps everything, and whether gradients,
// state and the generator have the same bits. Without shares it says "ready" and answers lines, for turns with another
// process:
//   plan BYTES  ok and JSON: predicted and measured bytes of a step planned into so many bytes of activations
//   run N       nanoseconds of each of N such steps
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lissome/compare.h"
#include "lissome/data.h"
#include "lissome/train.h"

namespace lissome {
namespace {

at::Tensor to_tensor(const Array& array) {
  return at::from_blob(
             array.storage.get(), array.sizes, [kept = array.storage](void*) {}, scalar_type_of(array.dtype))
      .clone();
}

class Worker {
 public:
  Worker(const std::string& model, const std::string& data, int64_t batch, int threads, int rounds)
      : model_(import_pt2(model)),
        data_(fit_dataset(load_dataset(data, {.labels = "labels"}), describe_inputs(model_))),
        threads_(threads),
        rounds_(rounds),
        inputs_(take(batch)),
        plain_(make_step(StepBudget{.recompute = KeepAll{}, .sizes = list_sizes()})) {
    for (const Weight& weight : plain_->program().weights) {
      if (weight.role == WeightRole::buffer) first_state_.push_back({weight.tensor, weight.tensor.clone()});
    }
    plain_bits_ = run_once(*plain_);
  }

  nlohmann::json answer(double share) {
    const StepForecast& all = *plain_->forecast();
    nlohmann::json row = plan(share * static_cast<double>(all.plain.total() - all.leaving));
    row["share"] = share;
    if (row.contains("error")) return row;
    const Interleaved times =
        compare_interleaved({{"plain", [&] { plain_->run(inputs_); }}, {"budget", [&] { step_->run(inputs_); }}},
                            {.warmup = 1, .rounds = rounds_, .least_rounds = rounds_});
    row["plain_seconds"] = times.summaries[0].median;
    row["seconds"] = times.summaries[1].median;
    row["ratio"] = times.ratios[1].median;
    row["ratio_low"] = times.ratios[1].interval.low;
    row["ratio_high"] = times.ratios[1].interval.high;
    return row;
  }

  void serve() {
    std::cout << "ready" << std::endl;
    for (std::string word; std::cin >> word;) {
      int64_t number = 0;
      std::cin >> number;
      if (word == "plan") {
        std::cout << "ok " << plan(static_cast<double>(number)).dump() << std::endl;
        continue;
      }
      for (int64_t i = 0; i < number; ++i) {
        const Stopwatch watch;
        step_->run(inputs_);
        std::cout << static_cast<int64_t>(watch.seconds() * 1e9) << " ";
      }
      std::cout << std::endl;
    }
  }

 private:
  // Plans and runs a step in so many bytes of activations.
  nlohmann::json plan(double activations) {
    const int64_t memory = plain_->forecast()->leaving + static_cast<int64_t>(activations);
    const Stopwatch watch;
    step_.reset();
    try {
      step_ = make_step(StepBudget{.memory = memory, .sizes = list_sizes()});
    } catch (const Error& error) {
      return {{"error", error.what()}};
    }
    const double planning = watch.seconds();
    const bool equal = same_bits(run_once(*step_));
    const StepMemory plain_measured = measure_memory(plain_->session(), [&] { plain_->run(inputs_); });
    const StepMemory measured = measure_memory(step_->session(), [&] { step_->run(inputs_); });
    const StepForecast& predicted = *step_->forecast();
    return {{"method", predicted.method},
            {"recomputed_nodes", predicted.recomputed_nodes},
            {"leaving", predicted.leaving},
            {"planning_seconds", planning},
            {"budget", memory},
            {"plain_predicted", predicted.plain.total()},
            {"plain_measured", plain_measured.total()},
            {"predicted", predicted.chosen.total()},
            {"measured", measured.total()},
            {"arena", measured.arena},
            {"ratio_predicted", predicted.seconds / predicted.plain_seconds},
            {"same_bits", equal}};
  }

  std::vector<at::Tensor> take(int64_t count) const {
    std::vector<at::Tensor> tensors;
    for (const NamedArray& column : take_batch(data_, 0, count)) tensors.push_back(to_tensor(column.array));
    tensors.push_back(to_tensor(take_labels(data_, 0, count)));
    return tensors;
  }

  std::vector<Sizes> list_sizes() const {
    std::vector<Sizes> sizes;
    for (const at::Tensor& input : inputs_) sizes.push_back(input.sizes().vec());
    return sizes;
  }

  std::unique_ptr<TrainingStep> make_step(StepBudget budget) const {
    const Sizes& sizes = data_.labels->sizes;
    const Program with_loss = attach_loss(model_, {}, data_.labels->dtype, {sizes.begin() + 1, sizes.end()});
    TrainingStepOptions options;
    options.threads = threads_;
    options.budget = std::move(budget);
    options.outputs = false;
    return std::make_unique<TrainingStep>(with_loss, take(std::min<int64_t>(3, inputs_[0].size(0))), options);
  }

  // Outputs, gradients, state and the generator after one step from the first state.
  std::vector<at::Tensor> run_once(TrainingStep& step) {
    for (auto& [tensor, first] : first_state_) tensor.detach().copy_(first);
    at::manual_seed(11);
    std::vector<at::Tensor> bits;
    for (const at::Tensor& output : step.run(inputs_)) bits.push_back(output.clone());
    for (const at::Tensor& gradient : step.gradients()) bits.push_back(gradient.clone());
    for (auto& [tensor, first] : first_state_) bits.push_back(tensor.clone());
    bits.push_back(at::detail::getDefaultCPUGenerator().get_state());
    return bits;
  }

  bool same_bits(const std::vector<at::Tensor>& bits) const {
    for (size_t i = 0; i < bits.size(); ++i) {
      if (!at::equal(bits[i], plain_bits_[i])) return false;
    }
    return bits.size() == plain_bits_.size();
  }

  Program model_;
  Dataset data_;
  int threads_, rounds_;
  std::vector<at::Tensor> inputs_;
  std::unique_ptr<TrainingStep> plain_, step_;
  std::vector<std::pair<at::Tensor, at::Tensor>> first_state_;
  std::vector<at::Tensor> plain_bits_;
};

}  // namespace
}  // namespace lissome

int main(int argument_count, char** arguments) {
  if (argument_count < 6) {
    std::fprintf(stderr, "usage: lissome_budget_worker MODEL.pt2 DATA.npz BATCH THREADS ROUNDS [SHARE...]\n");
    return 2;
  }
  try {
    const int threads = std::stoi(arguments[4]);
    at::set_num_threads(threads);
    lissome::Worker worker(arguments[1], arguments[2], std::stoll(arguments[3]), threads, std::stoi(arguments[5]));
    if (argument_count == 6) worker.serve();
    for (int i = 6; i < argument_count; ++i) std::cout << worker.answer(std::stod(arguments[i])).dump() << std::endl;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
