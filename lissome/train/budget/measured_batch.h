// The batch on which a step is measured: large enough to tell times, small enough to fit the budget.
#pragma once

#include <vector>

#include "lissome/train/budget/facts/step_source.h"
#include "lissome/train/budget/step_budget.h"

namespace lissome {

// The sizes of all inputs of a step: `sizes`, then those of the weights.
std::vector<Sizes> list_all_sizes(std::vector<Sizes> sizes, const std::vector<at::Tensor>& weights);

// Inputs of these sizes with the weights behind them, dense. Samples of `examples`, which must have some, repeat until
// there are enough. Inputs that have their size already are not copied.
std::vector<at::Tensor> repeat_samples(const std::vector<at::Tensor>& examples, const std::vector<Sizes>& sizes,
                                       const std::vector<at::Tensor>& weights);

// Halves the batch of the sizes, but not below that of the examples. False when it is down to the examples.
bool halve_batch(const Program& program, std::vector<Sizes>& sizes, const std::vector<at::Tensor>& examples);

// Inputs on which times are measured, weights included: half of the budget's batch, halved further until it fits
// without recomputation. The whole batch where the budget is no limit. Throws the errors of describe_step().
std::vector<at::Tensor> choose_measured(const StepSource& source, const std::vector<at::Tensor>& examples,
                                        const std::vector<at::Tensor>& weights, const StepBudget& budget);

}  // namespace lissome
