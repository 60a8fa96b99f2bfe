// A training as its log tells it (lissome train --log), to be shown beside another.
#pragma once

#include <string>

#include "lissome/train.h"

namespace lissome {

// History and epochs. Where a log was continued from a snapshot, what came last holds. Throws not_found, io, and
// invalid_input with the line that is no event of training.
TrainRecord read_train_log(const std::string& path);

}  // namespace lissome
