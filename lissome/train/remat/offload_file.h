// Memory that lies in a file: for what is needed once a step, a stretch at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lissome/runtime.h"

namespace lissome {

// Before long work: throws what an UnnamedFile in this folder would throw; an empty one is none.
void check_offload_folder(const std::string& folder);

class OffloadFile {
 public:
  // Zeros, in an unnamed file whose space is taken at once. Throws what UnnamedFile throws.
  OffloadFile(const std::string& folder, int64_t bytes);
  ~OffloadFile();
  OffloadFile(const OffloadFile&) = delete;
  OffloadFile& operator=(const OffloadFile&) = delete;

  std::byte* data() const { return data_; }
  // Starts to read a stretch ahead of its use; waits for nothing.
  void fetch(ByteRange range) const;
  // Starts to write a stretch back and takes it out of the process's memory. It can be used again at any time.
  void release(ByteRange range) const;
  // The same of a stretch whose contents nobody wants any more, or that was only read.
  void drop(ByteRange range) const;
  // Bytes of it that are in the process's memory now.
  int64_t resident() const;

 private:
  UnnamedFile file_;
  std::byte* data_ = nullptr;
  std::optional<MappedRange> range_;
};

}  // namespace lissome
