// Whether a model that was exported in eval mode would compute something else in train mode.
#pragma once

#include "lissome/program.h"

namespace lissome {

// By its nodes: batch norm and instance norm with running statistics, dropout that drops something, also between the
// layers of an LSTM, GRU or RNN. Dropout inside of attention cannot be seen: torch.export writes 0 in eval mode.
bool depends_on_mode(const Program& program);

}  // namespace lissome
