// Mixed precision: matrix products and convolutions in bf16 or f16, sums and losses in f32, weights kept in f32.
#pragma once

#include <optional>
#include <string>

#include "lissome/program.h"

namespace lissome {

// "f32", "bf16", "fp16"; none for "auto": see choose_precision(). Throws usage for other words.
std::optional<Dtype> parse_precision(const std::string& word);

// `program` as one region of PyTorch's autocast for the CPU (torch.autocast("cpu", dtype)): what it casts and what it
// leaves in f32 are PyTorch's own lists, those of the libtorch that runs. A pure program; inputs, weights, outputs and
// writes keep their places and names. differentiate_program() makes the casts nodes, those of a weight once however
// often it is read; gradients arrive in the dtypes of the weights. Throws invalid_input for a dtype other than bf16 and
// f16.
Program apply_autocast(const Program& program, Dtype dtype);

}  // namespace lissome
