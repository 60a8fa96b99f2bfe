// The processes of one host in a group: each runs this program with its rank in the environment.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lissome {

struct RankEnd {
  int rank = 0;
  int exit_code = 0;  // of the process; 128 + the signal that ended it
  std::string end;    // "exit code 4", "signal 9 (Killed)"
  std::string error;  // what the rank wrote to stderr, if its stderr was kept back
};

// A port on which nothing listens at 127.0.0.1 now.
uint16_t find_free_port();

class RankProcesses {
 public:
  // Starts `count` processes that run `lissome ARGUMENTS...`. Each may use its share of this process's cores and ends
  // with this process. stdout of all goes to the descriptor `results`; stderr of the ranks above 0 is kept back. Throws
  // io.
  RankProcesses(int count, uint16_t port, const std::vector<std::string>& arguments, int results);
  // Ends what still runs: SIGTERM, and SIGKILL after five seconds.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Waits until all have ended well, which is empty, or one has not. Of those that fail within a moment, it is one that
  // did not fail because it lost a peer (exit code 1), if there is one.
  std::optional<RankEnd> wait();
  // Both may be called from another thread than wait().
  void send(int signal) const;  // to all that still run
  bool any_left() const;

 private:
  struct Process {
    std::atomic<pid_t> id = -1;  // -1: ended
    int kept_stderr = -1;        // a file in memory; -1: not kept back
  };
  void start(int rank, int count, uint16_t port, const std::vector<std::string>& arguments, int results);
  std::optional<RankEnd> take_end(pid_t ended, int status);

  std::vector<Process> processes_;
};

}  // namespace lissome
