// Finds out whether a model that was exported in eval mode would compute something else in train mode.
#pragma once

#include "lissome/program.h"

namespace lissome {

// True if a node is batch norm or instance norm with running statistics, or dropout with a probability above 0, also
// between the layers of an LSTM, GRU or RNN. Dropout inside attention cannot be seen: torch.export writes 0 for it in
// eval mode.
bool depends_on_mode(const Program& program);

}  // namespace lissome
