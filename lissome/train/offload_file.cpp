// See offload_file.h. Pages are the kernel's: it reads and writes them while others are computed with.
#include "lissome/train/offload_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "lissome/base.h"

namespace lissome {
namespace {

// Whole pages.
ByteRange round_in(ByteRange range) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return {(range.begin + page - 1) / page * page, range.end / page * page};
}

}  // namespace

void check_offload_folder(const std::string& folder) {
  if (!folder.empty()) const UnnamedFile probe(folder);
}

OffloadFile::OffloadFile(const std::string& folder, int64_t bytes) : file_(folder) {
  if (bytes == 0) return;
  file_.reserve(bytes);
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file_.descriptor(), 0);
  if (data == MAP_FAILED)
    throw_error(ErrorKind::io, "a file of ", format_bytes(bytes), " in ", quote(folder),
                " cannot be mapped: ", std::error_code(errno, std::generic_category()).message());
  data_ = static_cast<std::byte*>(data);
}

OffloadFile::~OffloadFile() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(file_.bytes()));
}

void OffloadFile::fetch(ByteRange range) const { file_.fetch(range); }

void OffloadFile::release(ByteRange range) const {
  const ByteRange pages = round_in(range);
  if (data_ == nullptr || pages.begin >= pages.end) return;
  sync_file_range(file_.descriptor(), pages.begin, pages.end - pages.begin, SYNC_FILE_RANGE_WRITE);
  drop(range);
}

void OffloadFile::drop(ByteRange range) const {
  const ByteRange pages = round_in(range);
  if (data_ == nullptr || pages.begin >= pages.end) return;
  madvise(data_ + pages.begin, static_cast<size_t>(pages.end - pages.begin), MADV_DONTNEED);
}

int64_t OffloadFile::resident() const {
  std::ifstream maps("/proc/self/smaps");
  int64_t bytes = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long first = 0, last = 0, kilobytes = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &first, &last) == 2) {
      const auto begin = reinterpret_cast<uintptr_t>(data_), end = begin + static_cast<uintptr_t>(file_.bytes());
      ours = first < end && begin < last;
    } else if (ours && std::sscanf(line.c_str(), "Rss: %llu kB", &kilobytes) == 1) {
      bytes += static_cast<int64_t>(kilobytes) << 10;
    }
  }
  return bytes;
}

}  // namespace lissome
