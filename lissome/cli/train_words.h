// Words of the commands that train, train and budget: "adamw" and its like, and samples of a step.
#pragma once

#include <cstdint>
#include <string>

#include "lissome/train.h"

namespace lissome {

// Throws usage for another word than adamw, adam, sgd, lion and adafactor.
OptimizerOptions find_optimizer(const std::string& name);

// Samples from 1 on; 0 for "auto". Throws usage for another word.
int64_t parse_batch(const std::string& word);

}  // namespace lissome
