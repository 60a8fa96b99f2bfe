// See training_passes.h.
#include "lissome/train/rewrite/training_passes.h"

#include <algorithm>

#include "lissome/train/rewrite/count_dropout.h"
#include "lissome/train/rewrite/mask_before_pool.h"
#include "lissome/train/rewrite/restore_attention.h"
#include "lissome/train/rewrite/split_gradients.h"
#include "lissome/train/rewrite/split_joined.h"

namespace lissome {
namespace {

// count_dropout runs before the exact passes, which would otherwise fold the scale of a mask into its neighbours;
// mask_before_pool and split_joined read the forms that these passes leave; split_gradients runs last, because the two
// before it look for whole gradients of convolutions.
constexpr TrainingPass kTrainingPasses[] = {
    {"restore_attention", TrainingStage::recorded, restore_attention,
     "replaces attention written out by hand by one op, whose backward pass keeps no scores"},
    {"count_dropout", TrainingStage::joint, count_dropout,
     "computes dropout masks from a seed instead of keeping them"},
    {"mask_before_pool", TrainingStage::lowered, mask_before_pool,
     "applies the mask of ReLU before the gradient of max pooling"},
    {"split_joined", TrainingStage::lowered, split_joined, "splits convolutions of concatenated inputs into parts"},
    {"split_gradients", TrainingStage::budget, split_gradients, "computes the gradients of a convolution one by one"},
    {"split_scores", TrainingStage::planned, nullptr, "computes the scores of many classes in blocks of rows"},
};

PassResult run_one(const TrainingPass& pass, Program& program) {
  // The exact passes and lowering remove what nothing reads.
  return run_watched(pass.name, program, pass.run, [&](const Program&) { verify_program(program, Stage::imported); });
}

}  // namespace

std::span<const TrainingPass> list_training_passes() { return kTrainingPasses; }

const TrainingPass* find_training_pass(std::string_view name) {
  const auto* found = std::ranges::find(kTrainingPasses, name, &TrainingPass::name);
  return found == std::end(kTrainingPasses) ? nullptr : found;
}

void check_training_passes(const std::vector<std::string>& disabled) {
  std::vector<std::string> known;
  for (const TrainingPass& pass : kTrainingPasses) known.emplace_back(pass.name);
  check_pass_names("training pass", known, disabled);
}

void run_training_passes(TrainingStage stage, Program& program, const std::vector<std::string>& disabled,
                         std::vector<PassResult>& results) {
  for (const TrainingPass& pass : kTrainingPasses) {
    if (pass.stage != stage || pass.run == nullptr) continue;
    if (!is_disabled(disabled, pass.name)) results.push_back(run_one(pass, program));
  }
}

}  // namespace lissome
