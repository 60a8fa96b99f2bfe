// See temporary_file.h. The list of unfinished paths is read by signal handlers: a fixed array, atomics, no allocation.
#include "lissome/base/temporary_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

namespace lissome {
namespace {

constexpr std::string_view kPrefix = ".lissome-", kSuffix = ".tmp", kUnnamedPrefix = ".lissome-offload-";
constexpr int kMostTries = 100;
constexpr time_t kNetworkAge = 24 * 60 * 60;  // seconds

enum class PathState : uint8_t { unused, filling, listed, removing };
struct ListedPath {
  std::atomic<PathState> state{PathState::unused};
  std::array<char, PATH_MAX> path{};
};
// Zero pages until a path is listed: a start that stored into each would make a quarter of a MiB of them resident.
constinit std::array<ListedPath, 64> listed_paths;

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// ".lissome-12-3.tmp", and ".lissome-offload-AbCdEf" of file systems without unnamed files.
bool is_temporary_name(std::string_view name) {
  if (name.starts_with(kUnnamedPrefix)) return name.size() == kUnnamedPrefix.size() + 6;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(name.size(), kSuffix.size()));
  const size_t dash = name.find('-');
  return dash != std::string_view::npos && is_number(name.substr(0, dash)) && is_number(name.substr(dash + 1));
}

// File systems on which a lock is seen by every process that can see the file.
bool locks_reach_everyone(int folder) {
  constexpr std::array<int64_t, 5> kLocal = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC,
                                             OVERLAYFS_SUPER_MAGIC};
  struct statfs facts{};
  if (fstatfs(folder, &facts) != 0) return false;
  return std::find(kLocal.begin(), kLocal.end(), static_cast<int64_t>(facts.f_type)) != kLocal.end();
}

void remove_if_stale(int folder, const char* name, time_t least_age) {
  const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return;
  struct stat opened{}, named{};
  const bool ours = fstat(file, &opened) == 0 && S_ISREG(opened.st_mode) && opened.st_uid == geteuid() &&
                    opened.st_nlink == 1 && (least_age == 0 || time(nullptr) - opened.st_mtime >= least_age);
  // The name may have gone to another file since it was opened; the lock keeps the one that was opened.
  if (ours && flock(file, LOCK_EX | LOCK_NB) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      named.st_dev == opened.st_dev && named.st_ino == opened.st_ino)
    unlinkat(folder, name, 0);
  close(file);
}

// False where a sweep that looked at the file between its creation and its lock has taken it, or will.
bool lock_new_file(int file) {
  if (flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;  // no locks here: nobody sweeps here either
  struct stat facts{};
  return fstat(file, &facts) == 0 && facts.st_nlink > 0;
}

}  // namespace

UnfinishedPath::UnfinishedPath(const std::string& path) {
  if (path.size() >= PATH_MAX) return;
  for (size_t i = 0; i < listed_paths.size(); ++i) {
    PathState expected = PathState::unused;
    if (!listed_paths[i].state.compare_exchange_strong(expected, PathState::filling)) continue;
    std::memcpy(listed_paths[i].path.data(), path.c_str(), path.size() + 1);
    listed_paths[i].state.store(PathState::listed);
    place_ = static_cast<int>(i);
    return;
  }
}

UnfinishedPath& UnfinishedPath::operator=(UnfinishedPath&& other) noexcept {
  if (this != &other) {
    forget();
    place_ = std::exchange(other.place_, -1);
  }
  return *this;
}

void UnfinishedPath::forget() {
  if (place_ < 0) return;
  PathState expected = PathState::listed;
  // One that is being removed stays taken: the process ends.
  listed_paths[static_cast<size_t>(std::exchange(place_, -1))].state.compare_exchange_strong(expected,
                                                                                             PathState::unused);
}

void remove_unfinished_files() noexcept {
  for (ListedPath& listed : listed_paths) {
    PathState expected = PathState::listed;
    if (listed.state.compare_exchange_strong(expected, PathState::removing)) unlink(listed.path.data());
  }
  // Folders come last: those that held nothing else are empty now. A file that is gone is no folder.
  for (const ListedPath& listed : listed_paths) {
    if (listed.state.load() == PathState::removing) rmdir(listed.path.data());
  }
}

TemporaryFile::TemporaryFile(const std::string& folder) {
  static std::atomic<uint64_t> counter{0};
  for (int tried = 0; tried < kMostTries; ++tried) {
    // Short, whatever the length of the target's name is.
    path_ = folder + "/" + std::string(kPrefix) + std::to_string(getpid()) + "-" + std::to_string(counter++) +
            std::string(kSuffix);
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    error_ = file_ < 0 ? errno : EAGAIN;
    if (file_ < 0 && error_ != EEXIST) return;
    if (file_ < 0) continue;
    // Behind the creation, for a file of that name may be another's. What a signal between the two leaves is swept.
    unfinished_ = UnfinishedPath(path_);
    if (lock_new_file(file_)) return;
    unfinished_.forget();
    close(std::exchange(file_, -1));
  }
}

TemporaryFile::~TemporaryFile() {
  if (file_ < 0) return;
  unlink(path_.c_str());
  close(file_);
}

// The lock is held over the renaming: a sweep must not find the file between the two.
int TemporaryFile::move_to(const std::string& target) {
  if (rename(path_.c_str(), target.c_str()) != 0) return errno;
  unfinished_.forget();
  close(std::exchange(file_, -1));
  return 0;
}

void sweep_temporary_files(const std::string& folder) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  DIR* const entries = fdopendir(opened);
  if (entries == nullptr) {
    close(opened);
    return;
  }
  const time_t least_age = locks_reach_everyone(opened) ? 0 : kNetworkAge;
  while (const dirent* entry = readdir(entries)) {
    if (is_temporary_name(entry->d_name)) remove_if_stale(opened, entry->d_name, least_age);
  }
  closedir(entries);
}

}  // namespace lissome
