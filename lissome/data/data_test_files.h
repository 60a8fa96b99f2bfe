// For tests: arrays from lists of values, and IDX files byte by byte.
#pragma once

#include <libdeflate.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lissome/base.h"

namespace lissome {

template <typename T>
Array make_values(Dtype dtype, Sizes sizes, const std::vector<T>& values) {
  Array array = make_array(dtype, std::move(sizes));
  LISSOME_CHECK(static_cast<size_t>(array.elements()) == values.size());
  std::copy(values.begin(), values.end(), array.data<T>());
  return array;
}

template <typename T>
std::vector<T> values_of(const Array& array) {
  return std::vector<T>(array.data<T>(), array.data<T>() + array.elements());
}

inline std::string build_idx(int type, const std::vector<uint32_t>& sizes, const std::string& data) {
  std::string bytes = {'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (uint32_t size : sizes)
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 0xFF);
  return bytes + data;
}

inline std::string gzip_text(const std::string& bytes) {
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(6);
  std::string packed(libdeflate_gzip_compress_bound(compressor, bytes.size()), '\0');
  packed.resize(libdeflate_gzip_compress(compressor, bytes.data(), bytes.size(), packed.data(), packed.size()));
  libdeflate_free_compressor(compressor);
  return packed;
}

}  // namespace lissome
