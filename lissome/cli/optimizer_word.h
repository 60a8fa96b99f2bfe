// "adamw" and its like, for the commands that train.
#pragma once

#include <string>

#include "lissome/train.h"

namespace lissome {

// Throws usage for another word than adamw, adam, sgd, lion and adafactor.
OptimizerOptions find_optimizer(const std::string& name);

}  // namespace lissome
