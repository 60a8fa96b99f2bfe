// The checks by group, and the helpers that they share. For check_values.cpp and the groups' files.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "lissome/base.h"
#include "lissome/program/check/check_values.h"

namespace lissome {

struct ValueCheckRow {
  std::string_view op;
  ValueCheck check;
};

std::span<const ValueCheckRow> index_check_rows();     // check_values_index.cpp: bags, packed sequences, segments, CTC
std::span<const ValueCheckRow> layer_check_rows();     // check_values_layer.cpp: norms, attention, recurrent layers
std::span<const ValueCheckRow> geometry_check_rows();  // check_values_geometry.cpp: resampling, Fourier transforms
std::span<const ValueCheckRow> solver_check_rows();    // check_values_solver.cpp: pivots, infinities, divisions
std::span<const ValueCheckRow> count_check_rows();     // check_values_counts.cpp: terms of sums, tensors of lists
std::span<const ValueCheckRow> onednn_check_rows();    // check_values_onednn.cpp: what lowering packs for oneDNN

// Of all orthogonal polynomials, special_*_polynomial_*.
void check_degree(std::span<const c10::IValue> arguments);

// Throws invalid_input unless every index of a sparse tensor lies within its sizes, as its constructors demand: an
// op in place may have changed them since.
void check_sparse_indices(std::string_view argument, const at::Tensor& tensor);

template <typename... Parts>
void require_value(bool condition, const Parts&... parts) {
  if (!condition) throw_error(ErrorKind::invalid_input, parts...);
}

// All elements of an integer tensor lie within [low, high].
void require_range(std::string_view argument, const at::Tensor& tensor, int64_t low, int64_t high);
// An integer tensor on the processor, as i64.
at::Tensor read_integers(std::string_view argument, const at::Tensor& tensor);
bool is_present(const c10::IValue& value);
// "[2, 3]"
std::string print_sizes(at::IntArrayRef sizes);

}  // namespace lissome
