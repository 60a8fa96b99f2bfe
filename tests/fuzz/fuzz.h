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

// How many inputs a target had, how many of them passed the reader and ran, how many passed it and were too large to be
// run. Printed when the process ends, and now and then, since libFuzzer ends some runs without notice.
class RunCounts {
 public:
  explicit RunCounts(const char* name) : name_(name) {}
  ~RunCounts() { print(); }
  void add_execution() {
    if (++executions_ % (1 << 12) == 0) print();
  }
  void add_run() { ++ran_; }
  void add_large() { ++large_; }
  long long ran() const { return ran_; }

 private:
  void print() const {
    std::fprintf(stderr, "counts %s: %lld executions, %lld ran, %lld too large to run\n", name_, executions_, ran_,
                 large_);
  }
  const char* name_;
  long long executions_ = 0, ran_ = 0, large_ = 0;
};

// For targets that run what they read: -1, which keeps an input out of libFuzzer's corpus, unless it ran. What comes of
// an input that was refused is nearly always refused, too.
template <typename Reader>
int keep_what_runs(const RunCounts& counts, const Reader& reader) {
  const long long before = counts.ran();
  expect_refusal_or_result(reader);
  return counts.ran() > before ? 0 : -1;
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
