// A file without a name, for what need not lie in memory all the time: gone with the object or the process. What is
// written and read passes through the system's cache of pages, which is a second buffer where there is memory for one.
#pragma once

#include <cstdint>
#include <string>

namespace lissome {

struct ByteRange {
  int64_t begin = 0, end = 0;
};

class UnnamedFile {
 public:
  // Empty. Throws usage (no such folder) and io (no permission).
  explicit UnnamedFile(const std::string& folder);
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  int descriptor() const { return file_; }
  int64_t bytes() const { return bytes_; }
  // Takes the space for so many bytes, where it has not been taken yet; zeros. Throws io (no space), and is as before.
  void reserve(int64_t bytes);
  // Of reserved bytes. A write starts on its way to the disk, and waits for it only where the cache is full. Throw io.
  void write(int64_t offset, const void* from, int64_t bytes) const;
  void read(int64_t offset, void* to, int64_t bytes) const;
  // Starts to read a stretch ahead of its use.
  void fetch(ByteRange range) const;

 private:
  [[noreturn]] void fail(const char* what, int64_t bytes, int code) const;

  std::string folder_;
  int file_ = -1;
  int64_t bytes_ = 0;
};

}  // namespace lissome
