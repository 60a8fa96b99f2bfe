// Reads the log of a training (lissome train --log), to show it beside another training.
#pragma once

#include <string>

#include "lissome/train.h"

namespace lissome {

// Reads history and epochs. If a training was continued from a snapshot, its later lines count. Throws not_found, io,
// and invalid_input with the line that is not an event of training.
TrainRecord read_train_log(const std::string& path);

}  // namespace lissome
