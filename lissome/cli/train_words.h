// What the flags of `train` and `budget` share: losses, optimizers and batch sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lissome/cli/flags.h"
#include "lissome/train.h"

namespace lissome {

struct LossFlags {
  std::string name = "cross_entropy", class_weights;
  double label_smoothing = 0;
  int64_t ignored_label = -100;
};

void add_loss_flags(Flags& flags, LossFlags& to);
// Throws usage for a word that is not allowed, and for options that the loss does not have.
LossOptions make_loss(const LossFlags& flags, const Program& model);

// Reads adamw, adam, sgd, lion or adafactor. Throws usage for another word.
OptimizerOptions find_optimizer(const std::string& name);

// Throws usage, which names the flag `where`, for what is no number.
double parse_number(std::string_view text, const std::string& where);

// Reads a number of samples from 1 on, or "auto" as 0. Throws usage for another word.
int64_t parse_batch(const std::string& word);

}  // namespace lissome
