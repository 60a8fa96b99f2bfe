// Mapped reading and all-or-nothing writing; see file.h for what is promised.
#include "lissome/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "lissome/base/error.h"
#include "lissome/base/text.h"

namespace lissome {
namespace {

// A process cannot end while one of its threads waits in fsync, so that little may be left for it to write: a large
// file goes to the disk a stretch at a time, the next written while the last is on its way.
constexpr uint64_t kStretch = uint64_t{2} << 20;

std::atomic<bool> in_a_hurry{false};

std::string describe_errno(int code) {
  char buffer[128];
  return strerror_r(code, buffer, sizeof buffer);
}

int64_t read_modified_ns(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::string_view describe_file_type(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "not a regular file";
}

[[noreturn]] void fail_open(const std::string& path, int code) {
  if (code == ENOENT || code == ENOTDIR)
    throw_error(ErrorKind::usage, "cannot read ", quote(path), ": no such file. Check the path.");
  throw_error(ErrorKind::io, "cannot read ", quote(path), ": ", describe_errno(code), ".");
}

[[noreturn]] void fail_write(const std::string& path, uint64_t written, uint64_t wanted, int code) {
  std::string_view advice;
  if (code == ENOSPC || code == EDQUOT) advice = " Free space there or choose another folder.";
  if (code == EFBIG) advice = " Raise the limit (ulimit -f) or choose another folder.";
  throw_error(ErrorKind::io, "cannot write ", quote(path), ": ", describe_errno(code), " after ", written, " bytes, ",
              wanted, " more were to come. Nothing was left behind, an older file is as it was.", advice);
}

// Until these bytes are on the disk; a length of 0 is the rest of the file. Returns 0 or what failed there, which fsync
// would not tell again.
int wait_for_disk(int file, off_t at, off_t length) {
  constexpr unsigned kWait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (sync_file_range(file, at, length, kWait) == 0) return 0;
  return errno == EIO || errno == ENOSPC || errno == EDQUOT ? errno : 0;  // else the file system has no such call
}

// Behind a write up to `end`, the end of a stretch or not: starts to write the stretch to the disk, and waits for the
// one before it. Returns what wait_for_disk() returns.
int write_back_stretch(int file, uint64_t end) {
  if (end % kStretch != 0) return 0;
  const auto at = static_cast<off_t>(end - kStretch), length = static_cast<off_t>(kStretch);
  sync_file_range(file, at, length, SYNC_FILE_RANGE_WRITE);
  return at < length ? 0 : wait_for_disk(file, at - length, length);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The path behind symbolic links when the file exists, else the path itself.
std::string resolve_target(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string target = resolved;
  std::free(resolved);
  return target;
}

// Refuses targets that a rename would wrongly replace; returns the permissions that the new file gets.
mode_t check_target(const std::string& path, const std::string& target) {
  if (path.empty()) throw_error(ErrorKind::usage, "cannot write: the path is empty.");
  struct stat status{};
  if (stat(target.c_str(), &status) != 0) {
    if (path.back() == '/') throw_error(ErrorKind::usage, "cannot write ", quote(path), ": a file name is needed.");
    return 0;
  }
  if (!S_ISREG(status.st_mode))
    throw_error(ErrorKind::usage, "cannot write ", quote(path), ": it is ", describe_file_type(status.st_mode),
                ". Give the name of a regular file.");
  if (faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    throw_error(ErrorKind::io, "cannot write ", quote(path), ": ", describe_errno(errno),
                ". Make it writable or choose another name.");
  return status.st_mode & 07777;
}

// A folder is swept once: a later file of the same process finds nothing new.
void sweep_once(const std::string& folder) {
  static std::mutex mutex;
  static std::set<std::string> swept;
  {
    const std::lock_guard lock(mutex);
    if (!swept.insert(folder).second) return;
  }
  sweep_temporary_files(folder);
}

[[noreturn]] void fail_create(const std::string& path, const std::string& folder, int code) {
  const bool missing = code == ENOENT || code == ENOTDIR;
  struct stat status{};
  if (missing && stat(folder.empty() ? "." : folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    throw_error(ErrorKind::io, "cannot write ", quote(path), ": the folder ", quote(folder),
                " takes no new files. Choose another.");
  if (missing)
    throw_error(ErrorKind::usage, "cannot write ", quote(path), ": the folder ", quote(folder),
                " does not exist. Create it or choose another.");
  throw_error(ErrorKind::io, "cannot write ", quote(path), ": ", describe_errno(code), " in the folder ", quote(folder),
              ". Choose a folder that you may write to.");
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // Not blocking: opening a pipe must come back, so that it can be refused.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) {
    const int code = errno;
    struct stat status{};
    if (code == ENXIO && stat(path.c_str(), &status) == 0)  // sockets cannot be opened
      throw_error(ErrorKind::invalid_input, "cannot read ", quote(path), ": it is ", describe_file_type(status.st_mode),
                  ", only regular files are read.");
    fail_open(path, code);
  }
  std::shared_ptr<MappedFile> mapped(new MappedFile);
  mapped->file_ = file;
  mapped->path_ = path;
  struct stat status{};
  if (fstat(file, &status) != 0) fail_open(path, errno);
  if (S_ISDIR(status.st_mode))
    throw_error(ErrorKind::usage, "cannot read ", quote(path), ": it is a directory, a file is needed.");
  if (!S_ISREG(status.st_mode))
    throw_error(ErrorKind::invalid_input, "cannot read ", quote(path), ": it is ", describe_file_type(status.st_mode),
                ", only regular files are read.");
  mapped->modified_ns_ = read_modified_ns(status);
  if (status.st_size == 0) return mapped;  // an empty range cannot be mapped
  void* data =
      mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  if (data == MAP_FAILED) fail_open(path, errno);
  mapped->data_ = static_cast<const std::byte*>(data);
  mapped->size_ = static_cast<size_t>(status.st_size);
  mapped->range_.emplace(data, mapped->size_, path);
  return mapped;
}

MappedFile::~MappedFile() {
  range_.reset();  // before another mapping can lie there
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
  if (file_ >= 0) close(file_);
}

void MappedFile::release(std::span<const std::byte> bytes) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t last = (reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

void MappedFile::check_unchanged() const {
  check_mappings();
  struct stat status{};
  if (fstat(file_, &status) != 0)
    throw_error(ErrorKind::io, "cannot read ", quote(path_), ": ", describe_errno(errno), ".");
  if (static_cast<size_t>(status.st_size) != size_ || read_modified_ns(status) != modified_ns_)
    throw_error(ErrorKind::invalid_input, quote(path_), " changed while it was read (", size_, " bytes at opening, ",
                status.st_size, " now). Wait until it is written, then try again.");
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(resolve_target(path)) {
  const mode_t mode = check_target(path_, target_);
  const std::string folder = folder_of(target_);
  sweep_once(folder);
  temporary_.emplace(folder);
  if (temporary_->descriptor() < 0) fail_create(path_, folder, temporary_->error());
  // An older file keeps its permissions; where the file system has none there is nothing to keep.
  if (mode != 0) static_cast<void>(fchmod(temporary_->descriptor(), mode));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_at(position_, bytes);
  position_ += bytes.size();
}

void AtomicFile::write(const std::string& text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  LISSOME_CHECK(temporary_ && !sealed_, "write after seal of ", quote(path_));
  while (!bytes.empty()) {
    const size_t most = std::min<size_t>(bytes.size(), kStretch - offset % kStretch);
    const ssize_t written = pwrite(temporary_->descriptor(), bytes.data(), most, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_write(path_, offset, bytes.size(), written == 0 ? ENOSPC : errno);
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
    if (const int failed = write_back_stretch(temporary_->descriptor(), offset); failed != 0)
      fail_write(path_, offset, bytes.size(), failed);
  }
}

// The data, of which little is left by now, and not the journal of the file system, which waits for other files too.
void AtomicFile::seal() {
  LISSOME_CHECK(temporary_ && !sealed_, "second seal of ", quote(path_));
  if (const int failed = wait_for_disk(temporary_->descriptor(), 0, 0); failed != 0)
    fail_write(path_, position_, 0, failed);
  sealed_ = true;
}

// The new name itself must survive a crash. Some file systems cannot sync a folder: then this is all there is.
void AtomicFile::publish() {
  LISSOME_CHECK(temporary_ && sealed_, "publishing of ", quote(path_), " before its seal");
  check_mappings();  // what was computed from a mapping that broke must not look like a result
  if (const int failed = temporary_->move_to(target_); failed != 0) fail_write(path_, position_, 0, failed);
  temporary_.reset();
  if (in_a_hurry) return;
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  static_cast<void>(fsync(folder));
  close(folder);
}

void AtomicFile::commit() {
  if (!sealed_) seal();
  if (!in_a_hurry && fsync(temporary_->descriptor()) != 0) fail_write(path_, position_, 0, errno);
  publish();
}

void stop_file_syncs() noexcept { in_a_hurry = true; }

void sweep_temporary_files_beside(const std::string& path) { sweep_once(folder_of(resolve_target(path))); }

void write_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string read_text_file(const std::string& path, size_t limit) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  if (bytes.size() > limit)
    throw_error(ErrorKind::invalid_input, quote(path), " has ", bytes.size(), " bytes, at most ", limit,
                " are read here.");
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  file->check_unchanged();
  return text;
}

}  // namespace lissome
