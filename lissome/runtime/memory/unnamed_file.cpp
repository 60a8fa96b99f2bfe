// See unnamed_file.h.
#include "lissome/runtime/memory/unnamed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "lissome/base.h"

namespace lissome {
namespace {

// The system reads no more ahead for one request than its setting for the disk, which may be as little as this.
constexpr int64_t kFetchBytes = 128 << 10;

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

// Until all is moved: the system may move less at a time. Returns 0 or what was wrong.
template <typename Byte>
int move_all(auto move, int file, Byte* data, int64_t bytes, int64_t offset) {
  while (bytes > 0) {
    const ssize_t moved = move(file, data, static_cast<size_t>(bytes), offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return moved < 0 ? errno : EIO;
    data += moved, bytes -= moved, offset += moved;
  }
  return 0;
}

}  // namespace

UnnamedFile::UnnamedFile(const std::string& folder) : folder_(folder), file_(open_unnamed(folder)) {
  if (file_ >= 0) return;
  throw_error(errno == ENOENT || errno == ENOTDIR ? ErrorKind::usage : ErrorKind::io,
              "nothing can be offloaded to the folder ", quote(folder), ": ", describe(errno));
}

UnnamedFile::~UnnamedFile() { close(file_); }

void UnnamedFile::fail(const char* what, int64_t bytes, int code) const {
  throw_error(ErrorKind::io, format_bytes(bytes), " cannot be ", what, " ", quote(folder_), ": ", describe(code));
}

void UnnamedFile::reserve(int64_t bytes) {
  if (bytes <= bytes_) return;
  if (const int full = posix_fallocate(file_, bytes_, bytes - bytes_); full != 0) {
    if (ftruncate(file_, bytes_) != 0) fail("given back in", bytes, errno);  // what there was room for
    fail("offloaded to", bytes, full);
  }
  bytes_ = bytes;
}

void UnnamedFile::write(int64_t offset, const void* from, int64_t bytes) const {
  LISSOME_CHECK(offset >= 0 && bytes >= 0 && bytes <= bytes_ - offset);
  const int wrong = move_all(pwrite, file_, static_cast<const std::byte*>(from), bytes, offset);
  if (wrong != 0) fail("written to a file in", bytes, wrong);
  sync_file_range(file_, offset, bytes, SYNC_FILE_RANGE_WRITE);
}

void UnnamedFile::read(int64_t offset, void* to, int64_t bytes) const {
  LISSOME_CHECK(offset >= 0 && bytes >= 0 && bytes <= bytes_ - offset);
  const int wrong = move_all(pread, file_, static_cast<std::byte*>(to), bytes, offset);
  if (wrong != 0) fail("read from a file in", bytes, wrong);
}

void UnnamedFile::fetch(ByteRange range) const {
  for (int64_t at = range.begin; at < range.end; at += kFetchBytes)
    posix_fadvise(file_, at, std::min(kFetchBytes, range.end - at), POSIX_FADV_WILLNEED);
}

}  // namespace lissome
