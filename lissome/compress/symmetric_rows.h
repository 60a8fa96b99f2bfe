// Rows of numbers as s8 with a scale each.
#pragma once

#include <ATen/core/Tensor.h>

namespace lissome {

struct SymmetricRows {
  at::Tensor numbers;  // s8 [rows, columns], within -127..127
  at::Tensor scales;   // f32 [rows]
};

// Of `rows`, f32 [rows, columns], each number multiplied by `factors`, f64 [rows or 1, columns] (undefined: 1). A scale
// is the coarsest of which all numbers of the row are multiples, as fake quantization leaves them, else that of the
// largest number. Numbers are rounded half to even in f64.
SymmetricRows round_rows(const at::Tensor& rows, const at::Tensor& factors);

}  // namespace lissome
