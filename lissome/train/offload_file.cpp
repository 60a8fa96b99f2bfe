// See offload_file.h. Pages are the kernel's: it reads and writes them while others are computed with.
#include "lissome/train/offload_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "lissome/base.h"

namespace lissome {
namespace {

std::string describe(int code) { return std::error_code(code, std::generic_category()).message(); }

int open_unnamed(const std::string& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  // A file system without unnamed files.
  std::string path = folder + "/.lissome-offload-XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

// Whole pages.
ByteRange round_out(ByteRange range) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return {range.begin / page * page, (range.end + page - 1) / page * page};
}
ByteRange round_in(ByteRange range) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return {(range.begin + page - 1) / page * page, range.end / page * page};
}

}  // namespace

OffloadFile::OffloadFile(const std::string& folder, int64_t bytes) : file_(open_unnamed(folder)), bytes_(bytes) {
  if (file_ < 0)
    throw_error(errno == ENOENT || errno == ENOTDIR ? ErrorKind::usage : ErrorKind::io,
                "nothing can be offloaded to the folder ", quote(folder), ": ", describe(errno));
  if (bytes == 0) return;
  const int full = posix_fallocate(file_, 0, bytes);
  void* data =
      full == 0 ? mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0) : MAP_FAILED;
  if (data == MAP_FAILED) {
    const int problem = full != 0 ? full : errno;
    close(file_);
    throw_error(ErrorKind::io, format_bytes(bytes), " cannot be offloaded to ", quote(folder), ": ", describe(problem));
  }
  data_ = static_cast<std::byte*>(data);
}

OffloadFile::~OffloadFile() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
  if (file_ >= 0) close(file_);
}

void OffloadFile::fetch(ByteRange range) const {
  const ByteRange pages = round_out(range);
  if (data_ != nullptr) madvise(data_ + pages.begin, static_cast<size_t>(pages.end - pages.begin), MADV_WILLNEED);
}

void OffloadFile::release(ByteRange range) const {
  const ByteRange pages = round_in(range);
  if (data_ == nullptr || pages.begin >= pages.end) return;
  sync_file_range(file_, pages.begin, pages.end - pages.begin, SYNC_FILE_RANGE_WRITE);
  madvise(data_ + pages.begin, static_cast<size_t>(pages.end - pages.begin), MADV_DONTNEED);
}

}  // namespace lissome
