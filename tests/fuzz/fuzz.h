// What the fuzz targets share: a broken input must end in a lissome::Error, and in nothing else.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "lissome/base.h"

namespace lissome {

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Runs the reader; a refusal in readable words is what we want to see, an internal error is a bug.
template <typename Reader>
int expect_refusal_or_result(const Reader& reader) {
  try {
    reader();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::internal && error.kind() != ErrorKind::io && is_utf8(error.message())) return 0;
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}

// The input as a file in memory, for the readers that map files.
inline std::string write_input(const uint8_t* data, size_t size, const char* suffix) {
  static const std::string path = "/dev/shm/lissome_fuzz_" + std::to_string(getpid()) + suffix;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) std::abort();
  std::atexit([] { std::remove(path.c_str()); });
  return path;
}

// Touches every byte, so that a span beyond its memory is seen.
inline void read_all(std::span<const std::byte> bytes) {
  volatile unsigned sum = 0;
  for (const std::byte byte : bytes) sum = sum + static_cast<unsigned>(byte);
}

inline void read_all(const Array& array) {
  read_all({static_cast<const std::byte*>(array.storage.get()), static_cast<size_t>(array.bytes())});
}

}  // namespace lissome
