// See measured_batch.h.
#include "lissome/train/budget/measured_batch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>

#include <algorithm>

#include "lissome/train/budget/facts/step_memory.h"

namespace lissome {

std::vector<Sizes> list_all_sizes(std::vector<Sizes> sizes, const std::vector<at::Tensor>& weights) {
  for (const at::Tensor& weight : weights) sizes.push_back(weight.sizes().vec());
  return sizes;
}

std::vector<at::Tensor> repeat_samples(const std::vector<at::Tensor>& examples, const std::vector<Sizes>& sizes,
                                       const std::vector<at::Tensor>& weights) {
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < examples.size(); ++i) {
    at::Tensor tensor = examples[i];
    for (int64_t k = 0; k < tensor.dim(); ++k) {
      const int64_t wanted = sizes[i][static_cast<size_t>(k)];
      if (tensor.size(k) != wanted) tensor = tensor.index_select(k, at::arange(wanted).remainder(tensor.size(k)));
    }
    inputs.push_back(tensor.contiguous());
  }
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  return inputs;
}

bool halve_batch(const Program& program, std::vector<Sizes>& sizes, const std::vector<at::Tensor>& examples) {
  bool halved = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ValueType& type = program.value(program.inputs[i].value).type;
    if (type.sizes.empty() || type.sizes[0].constant()) continue;
    const int64_t least = examples[i].size(0);
    if (sizes[i][0] <= least) continue;
    sizes[i][0] = std::max(least, sizes[i][0] / 2);
    halved = true;
  }
  return halved;
}

std::vector<at::Tensor> choose_measured(const StepSource& source, const std::vector<at::Tensor>& examples,
                                        const std::vector<at::Tensor>& weights, const StepBudget& budget) {
  std::vector<Sizes> sizes = budget.sizes;
  std::vector<at::Tensor> inputs = examples;
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  while (budget.memory > 0 && halve_batch(*source.program, sizes, examples)) {
    const std::vector<Sizes> all = list_all_sizes(sizes, weights);
    const StepFacts facts = describe_step(source, inputs, all);
    const RunOrder plain = make_plain_schedule(facts.model);
    if (predict_memory(facts, plain, *source.plan, all, source.threads).total() <= budget.memory) break;
  }
  return repeat_samples(examples, sizes, weights);
}

}  // namespace lissome
