// Mixed precision: matrix products and convolutions in bf16 or f16, sums and losses in f32, weights kept in f32.
#pragma once

#include <optional>
#include <string>

#include "lissome/program.h"

namespace lissome {

// Reads "f32", "bf16" or "fp16"; empty for "auto", see choose_precision(). Throws usage for other words.
std::optional<Dtype> parse_precision(const std::string& word);

// `program` as one region of PyTorch's autocast for the CPU (torch.autocast("cpu", dtype)). The running libtorch's own
// lists decide which ops are cast and which stay in f32. `program` must be pure; inputs, weights, outputs and writes
// keep their order and names. differentiate_program() turns the casts into nodes, one for each weight however often it
// is read. Gradients have the dtypes of the weights. Throws invalid_input for a dtype other than bf16 and f16.
Program apply_autocast(const Program& program, Dtype dtype);

}  // namespace lissome
