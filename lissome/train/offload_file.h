// Memory that lies in a file: for what is needed once a step, a stretch at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lissome {

struct ByteRange {
  int64_t begin = 0, end = 0;
};

class OffloadFile {
 public:
  // Zeros, in a file without a name that goes with this object or the process. Its space is taken at once. Throws usage
  // (no such folder) and io (no permission, no space).
  OffloadFile(const std::string& folder, int64_t bytes);
  ~OffloadFile();
  OffloadFile(const OffloadFile&) = delete;
  OffloadFile& operator=(const OffloadFile&) = delete;

  std::byte* data() const { return data_; }
  // Starts to read a stretch ahead of its use; waits for nothing.
  void fetch(ByteRange range) const;
  // Starts to write a stretch back and takes it out of the process's memory. It can be used again at any time.
  void release(ByteRange range) const;

 private:
  int file_ = -1;
  int64_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace lissome
