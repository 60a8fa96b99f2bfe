// Files that are still being written, ".lissome-<process>-<number>.tmp" beside their place: locked while they are
// written, listed so that a signal handler can remove them, swept where a killed process left them.
#pragma once

#include <string>

namespace lissome {

// Paths that remove_unfinished_files() removes. The list holds a fixed number of paths; a path beyond that is only left
// for the next sweep.
class UnfinishedPath {
 public:
  UnfinishedPath() = default;
  explicit UnfinishedPath(const std::string& path);  // a file, or a folder that is removed while it is empty
  ~UnfinishedPath() { forget(); }
  UnfinishedPath(const UnfinishedPath&) = delete;
  UnfinishedPath& operator=(const UnfinishedPath&) = delete;
  UnfinishedPath& operator=(UnfinishedPath&& other) noexcept;

  void forget();  // the path stays where it is

 private:
  int place_ = -1;
};

// Removes every unfinished file and empty folder of this process. Async-signal-safe; the process must end next, because
// what still writes these files finds them gone.
void remove_unfinished_files() noexcept;

// An open temporary file in `folder`, locked (flock) until it is closed: no sweep removes it meanwhile.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& folder);
  ~TemporaryFile();  // removes the file unless it was moved
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const { return file_; }  // -1: no file could be made
  int error() const { return error_; }      // errno of that
  // Renames the file to `target` and closes it. Returns 0 or errno; the file is then still a temporary one.
  int move_to(const std::string& target);

 private:
  std::string path_;
  int file_ = -1, error_ = 0;
  UnfinishedPath unfinished_;
};

// Removes the temporary files in `folder` whose writers are gone: names of ours, of this user, whose lock is free. The
// process id in the name does not count, since containers that share a folder repeat it. Where locks may not reach
// every machine (network file systems), a file must also be a day old. Failures are ignored: a stale file does no harm.
void sweep_temporary_files(const std::string& folder);

}  // namespace lissome
