// NumPy's .npy and .npz: the data files that users have.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lissome/base/tensor.h"

namespace lissome {

// Arrays by name, in file order. Reads .npz (stored or deflated members), a single .npy (named after the file) and
// files that end in .safetensors.
// C order and Fortran order, both byte orders; object arrays (pickles), strings, dates and records are refused. Arrays
// that are stored uncompressed borrow the mapped file where 64-byte aligned. NaN is data like any other here. Throws
// usage (no such file), invalid_input naming file, entry, seen, allowed; over_budget when the arrays cannot fit in
// memory.
std::vector<NamedArray> load_arrays(const std::string& path);

// The contents of one .npy. `source` names it in errors; the array borrows `bytes` where 64-byte aligned, and then
// keeps `owner` alive; without an owner it is always a copy.
Array parse_npy(std::span<const std::byte> bytes, const std::string& source, std::shared_ptr<const void> owner);

// Throws invalid_input for a name that no array of an .npz may have: with '..', a control character or a backslash in
// it, absolute, or longer than 1,000 bytes. Names of outputs come with the model, and some archivers write where they
// say.
void check_array_name(const std::string& name);

// One .npz (stored members), readable by numpy.load. bf16 has no NumPy type and is written as f32. Throws the errors of
// check_array_name() before anything is written.
void save_arrays(const std::string& path, const std::vector<NamedArray>& arrays);

}  // namespace lissome
