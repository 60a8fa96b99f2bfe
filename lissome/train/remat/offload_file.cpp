// See offload_file.h. The kernel reads and writes pages while computation uses other pages.
#include "lissome/train/remat/offload_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <vector>

#include "lissome/base.h"

namespace lissome {
namespace {

// The whole pages inside the range.
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
  range_.emplace(data, static_cast<size_t>(bytes), "an offload file in " + folder);
}

OffloadFile::~OffloadFile() {
  range_.reset();
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(file_.bytes()));
}

void OffloadFile::fetch(ByteRange range) const { file_.fetch(range); }

void OffloadFile::release(ByteRange range) const {
  const ByteRange pages = round_in(range);
  if (data_ == nullptr || pages.begin >= pages.end) return;
  sync_file_range(file_.descriptor(), pages.begin, pages.end - pages.begin, SYNC_FILE_RANGE_WRITE);
  discard(range);
}

void OffloadFile::discard(ByteRange range) const {
  const ByteRange pages = round_in(range);
  if (data_ == nullptr || pages.begin >= pages.end) return;
  madvise(data_ + pages.begin, static_cast<size_t>(pages.end - pages.begin), MADV_DONTNEED);
}

// Reads the process's page table of the mapped range alone, 8 bytes for each page.
int64_t OffloadFile::resident() const {
  constexpr uint64_t kPresent = uint64_t{1} << 63;
  const int64_t page = sysconf(_SC_PAGESIZE);
  std::vector<uint64_t> entries(static_cast<size_t>((file_.bytes() + page - 1) / page));
  std::ifstream table("/proc/self/pagemap", std::ios::binary);
  table.seekg(static_cast<std::streamoff>(reinterpret_cast<uintptr_t>(data_) / static_cast<uintptr_t>(page) *
                                          sizeof(uint64_t)));
  table.read(reinterpret_cast<char*>(entries.data()), static_cast<std::streamsize>(entries.size() * sizeof(uint64_t)));
  return page * std::count_if(entries.begin(), entries.end(), [](uint64_t entry) { return (entry & kPresent) != 0; });
}

}  // namespace lissome
