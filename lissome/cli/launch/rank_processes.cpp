// See rank_processes.h.
#include "lissome/cli/launch/rank_processes.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "lissome/base.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

// The cores of this process that rank `rank` of `count` uses: an equal share, or one of them where there are fewer.
cpu_set_t choose_cores(int rank, int count) {
  cpu_set_t all, share;
  CPU_ZERO(&share);
  if (sched_getaffinity(0, sizeof all, &all) != 0) throw_error(ErrorKind::io, "sched_getaffinity: ", strerror(errno));
  const int cores = CPU_COUNT(&all);
  const int first = cores < count ? rank % cores : cores * rank / count;
  const int last = cores < count ? first : cores * (rank + 1) / count - 1;
  int position = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &all)) continue;
    if (position >= first && position <= last) CPU_SET(core, &share);
    ++position;
  }
  return share;
}

std::vector<std::string> list_environment(int rank, int count, uint16_t port) {
  const std::vector<std::pair<std::string, std::string>> ours = {
      {"RANK", std::to_string(rank)}, {"LOCAL_RANK", std::to_string(rank)},  {"WORLD_SIZE", std::to_string(count)},
      {"MASTER_ADDR", "127.0.0.1"},   {"MASTER_PORT", std::to_string(port)}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool replaced =
        std::any_of(ours.begin(), ours.end(), [&](const auto& one) { return text.starts_with(one.first + "="); });
    if (!replaced) environment.push_back(text);
  }
  for (const auto& [name, value] : ours) environment.push_back(name + "=" + value);
  return environment;
}

std::vector<char*> list_pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string read_kept(int file) {
  std::string text(static_cast<size_t>(std::max<off_t>(lseek(file, 0, SEEK_END), 0)), '\0');
  const ssize_t count = pread(file, text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

}  // namespace

uint16_t find_free_port() {
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool found = handle >= 0 && bind(handle, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int failure = errno;
  if (handle >= 0) close(handle);
  if (!found) throw_error(ErrorKind::io, "no port is free at 127.0.0.1: ", strerror(failure));
  return ntohs(address.sin_port);
}

RankProcesses::RankProcesses(int count, uint16_t port, const std::vector<std::string>& arguments, int results)
    : processes_(static_cast<size_t>(count)) {
  for (int rank = 0; rank < count; ++rank) start(rank, count, port, arguments, results);
}

void RankProcesses::start(int rank, int count, uint16_t port, const std::vector<std::string>& arguments, int results) {
  // All memory is taken before fork(): after it, a process of several threads may call little else than exec.
  std::vector<std::string> words = {"lissome"}, variables = list_environment(rank, count, port);
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argument_list = list_pointers(words), environment_list = list_pointers(variables);
  const cpu_set_t cores = choose_cores(rank, count);
  Process& process = processes_[static_cast<size_t>(rank)];
  if (rank > 0) process.kept_stderr = memfd_create("stderr", MFD_CLOEXEC);
  const pid_t parent = getpid();
  process.id = fork();
  if (process.id < 0) throw_error(ErrorKind::io, "the process of rank ", rank, " cannot be started: ", strerror(errno));
  if (process.id > 0) return;
  setpgid(0, 0);  // a terminal's Ctrl-C reaches the launcher alone, which passes it on once
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sched_setaffinity(0, sizeof cores, &cores);
  dup2(results, STDOUT_FILENO);
  if (process.kept_stderr >= 0) dup2(process.kept_stderr, STDERR_FILENO);
  execve("/proc/self/exe", argument_list.data(), environment_list.data());
  _exit(127);
}

// Empty if the process ended well, or is none of ours.
std::optional<RankEnd> RankProcesses::take_end(pid_t ended, int status) {
  const auto process =
      std::find_if(processes_.begin(), processes_.end(), [&](const Process& one) { return one.id == ended; });
  if (process == processes_.end()) return std::nullopt;
  process->id = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  RankEnd end;
  end.rank = static_cast<int>(process - processes_.begin());
  if (WIFEXITED(status)) {
    end.exit_code = WEXITSTATUS(status);
    end.end = "exit code " + std::to_string(end.exit_code);
  } else {
    end.exit_code = 128 + WTERMSIG(status);
    end.end = "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  }
  if (process->kept_stderr >= 0) end.error = read_kept(process->kept_stderr);
  return end;
}

std::optional<RankEnd> RankProcesses::wait() {
  constexpr double kMoment = 0.3;
  std::optional<RankEnd> first;
  std::optional<Stopwatch> since;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, first ? WNOHANG : 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) return first;  // no process is left
    if (ended == 0) {
      if (since->seconds() > kMoment) return first;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    std::optional<RankEnd> end = take_end(ended, status);
    if (!end) continue;
    if (end->exit_code != exit_code(ErrorKind::io)) return end;
    if (!first) first = std::move(end), since.emplace();
  }
}

void RankProcesses::send(int signal) const {
  for (const Process& process : processes_) {
    if (process.id > 0) kill(process.id, signal);
  }
}

bool RankProcesses::any_left() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const Process& process) { return process.id > 0; });
}

RankProcesses::~RankProcesses() {
  constexpr double kSecondsToEnd = 5;
  send(SIGTERM);
  const Stopwatch watch;
  for (Process& process : processes_) {
    while (process.id > 0 && waitpid(process.id, nullptr, WNOHANG) == 0) {
      if (watch.seconds() > kSecondsToEnd) kill(process.id, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (process.kept_stderr >= 0) close(process.kept_stderr);
  }
}

}  // namespace lissome
