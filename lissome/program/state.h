// State in an interpretation: what barriers write is copied first, what `program.writes` names is stored at the end.
#pragma once

#include <vector>

#include "lissome/program.h"

namespace lissome {

// Replaces, in `environment` (by ValueId), the tensors of inputs and weights that some node may write by copies.
void copy_written_sources(const Program& program, std::vector<c10::IValue>& environment);

// The values of `program.writes`, in their order.
std::vector<at::Tensor> collect_written(const Program& program, const std::vector<c10::IValue>& environment);

// Copies them into their targets. Outputs that share storage with a target keep what they held before.
void store_written(const Program& program, const std::vector<at::Tensor>& written,
                   const std::vector<c10::IValue>& environment, std::vector<c10::IValue>& outputs);

}  // namespace lissome
