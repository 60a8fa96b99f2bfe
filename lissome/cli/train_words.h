// Reads words of the flags that `train` and `budget` share: optimizers and batch sizes.
#pragma once

#include <cstdint>
#include <string>

#include "lissome/train.h"

namespace lissome {

// Reads adamw, adam, sgd, lion or adafactor. Throws usage for another word.
OptimizerOptions find_optimizer(const std::string& name);

// Reads a number of samples from 1 on, or "auto" as 0. Throws usage for another word.
int64_t parse_batch(const std::string& word);

}  // namespace lissome
