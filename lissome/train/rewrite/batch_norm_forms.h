// The ops that are batch norms in a model that trains.
#pragma once

#include <cstddef>
#include <string_view>

#include "lissome/program.h"

namespace lissome {

// The results that are the new running mean and variance; 0: the op gives none.
struct BatchNormForm {
  std::string_view op;
  size_t mean = 0, variance = 0;
};

// Null for other ops.
const BatchNormForm* find_batch_norm_form(const Node& node);
// Whether the node is a batch norm by the statistics of its batch.
bool normalizes_by_batch(const Node& node);

}  // namespace lissome
