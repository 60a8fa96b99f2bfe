// The rewrites that only training needs, in the order in which they run. As with the exact passes of lissome/pass.h,
// each can be disabled by its name, is verified after each change, and is shown as a diff.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/pass.h"

namespace lissome {

// When a pass runs. Between `joint` and `lowered` the exact passes run, without the order of memory.
enum class TrainingStage : uint8_t {
  recorded,  // on the program with its loss, before gradients are recorded
  joint,     // on the program of loss and gradients, with weights as inputs
  lowered,   // on the same program, before it is lowered
  budget,    // at the same point, if the step must fit into memory
  planned,   // on the same program, after a plan has shown that memory is short; see split_scores.h
};

struct TrainingPass {
  std::string_view name;
  TrainingStage stage;
  int (*run)(Program&);  // returns its number of rewrites; null for `planned`
  std::string_view summary;
};

std::span<const TrainingPass> list_training_passes();
const TrainingPass* find_training_pass(std::string_view name);  // null when absent

// Throws usage, suggesting the nearest name, if one of these is not a training pass.
void check_training_passes(const std::vector<std::string>& disabled);

// Runs the passes of a stage except those in `disabled`, and verifies after every change. Appends to `results`.
void run_training_passes(TrainingStage stage, Program& program, const std::vector<std::string>& disabled,
                         std::vector<PassResult>& results);

}  // namespace lissome
