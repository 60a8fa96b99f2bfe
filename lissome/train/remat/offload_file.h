// Memory that is mapped to a file, for data that a step needs once, one range at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lissome/runtime.h"

namespace lissome {

// Checks the folder before long work: throws the errors of an UnnamedFile there. An empty name passes.
void check_offload_folder(const std::string& folder);

class OffloadFile {
 public:
  // Maps zeros in an unnamed file whose disk space is reserved at once. Throws the errors of UnnamedFile.
  OffloadFile(const std::string& folder, int64_t bytes);
  ~OffloadFile();
  OffloadFile(const OffloadFile&) = delete;
  OffloadFile& operator=(const OffloadFile&) = delete;

  std::byte* data() const { return data_; }
  // Starts to read a range ahead of its use and returns at once.
  void fetch(ByteRange range) const;
  // Starts to write a range back and removes it from the process's memory. It can be used again at any time.
  void release(ByteRange range) const;
  // Removes a range from the process's memory without writing it back: its contents are not needed, or were only read.
  void discard(ByteRange range) const;
  // Bytes of the file that are in the process's memory now.
  int64_t resident() const;

 private:
  UnnamedFile file_;
  std::byte* data_ = nullptr;
  std::optional<MappedRange> range_;
};

}  // namespace lissome
