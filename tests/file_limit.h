// For unit tests: files that cannot grow.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace lissome {

// No file of this process may be longer while it stands: what a full disk does to a write, without filling one.
class FileLimit {
 public:
  explicit FileLimit(int64_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{static_cast<rlim_t>(bytes), before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int);
};

}  // namespace lissome
