// Reads the gzipped IDX files of (Fashion-)MNIST: a magic number 0x0000'08'rank, `rank` big-endian sizes, unsigned bytes.
#pragma once

#include <libdeflate.h>
#include <torch/torch.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

inline std::vector<uint8_t> unpack_gzip(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> packed((std::istreambuf_iterator<char>(file)), {});
  if (packed.size() < 18) throw std::runtime_error(path + ": missing, or not a gzip file");
  // The last four bytes of a gzip file are the unpacked size.
  const uint8_t* tail = packed.data() + packed.size() - 4;
  std::vector<uint8_t> bytes(tail[0] | tail[1] << 8 | tail[2] << 16 | static_cast<size_t>(tail[3]) << 24);
  std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  size_t unpacked = 0;
  if (libdeflate_gzip_decompress(decompressor.get(), packed.data(), packed.size(), bytes.data(), bytes.size(),
                                 &unpacked) != LIBDEFLATE_SUCCESS ||
      unpacked != bytes.size())
    throw std::runtime_error(path + ": broken gzip file");
  return bytes;
}

inline torch::Tensor read_idx(const std::string& path) {
  const std::vector<uint8_t> bytes = unpack_gzip(path);
  const size_t rank = bytes.size() < 4 ? 0 : bytes[3];
  if (rank == 0 || bytes[0] || bytes[1] || bytes[2] != 8 || bytes.size() < 4 + 4 * rank)
    throw std::runtime_error(path + ": not an IDX file of unsigned bytes");
  std::vector<int64_t> sizes;
  size_t elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    const uint8_t* word = bytes.data() + 4 + 4 * d;
    sizes.push_back(static_cast<int64_t>(word[0]) << 24 | word[1] << 16 | word[2] << 8 | word[3]);
    elements *= static_cast<size_t>(sizes.back());
  }
  if (bytes.size() != 4 + 4 * rank + elements) throw std::runtime_error(path + ": size does not fit its header");
  torch::Tensor tensor = torch::empty(sizes, torch::kByte);
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(4 + 4 * rank), bytes.end(), tensor.data_ptr<uint8_t>());
  return tensor;
}
