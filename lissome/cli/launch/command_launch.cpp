// lissome launch: starts the processes of a training on this host, without Python.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "lissome/base.h"
#include "lissome/cli/command.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/interrupt.h"
#include "lissome/cli/launch/rank_processes.h"

namespace lissome {
namespace {

constexpr int kMostProcesses = 1024;
constexpr int kInterrupted = 130;  // exit code

struct LaunchFlags {
  int processes = 0;
  int restarts = 0;
  int port = 0;  // 0: a free one
};

// Exit codes that another start would bring again: usage, a goal that is not met, a file that is refused.
bool is_lasting(int code) {
  return code == exit_code(ErrorKind::usage) || code == exit_code(ErrorKind::over_budget) ||
         code == exit_code(ErrorKind::invalid_input);
}

std::optional<RankEnd> run_once(const LaunchFlags& flags, const std::vector<std::string>& command,
                                const Console& console) {
  const auto port = flags.port == 0 ? find_free_port() : static_cast<uint16_t>(flags.port);
  RankProcesses ranks(flags.processes, port, command, console.results());
  const std::shared_ptr<void> promise = console.promise(0, [&] {
    ranks.send(SIGTERM);
    while (ranks.any_left()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  return ranks.wait();
}

}  // namespace

int run_launch(const std::vector<std::string>& arguments, Console& console) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const std::vector<std::string> command(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
  LaunchFlags to;
  Flags flags("launch",
              "Starts processes that train one model together, on this host: lissome launch --processes 2 -- train "
              "MODEL ... Each uses its share of the cores.");
  flags.add("--processes,--nproc", to.processes, "Processes to start, each a rank.", 1, kMostProcesses);
  flags.add("--max-restarts", to.restarts,
            "Times that all ranks are started again after one failed. Give train --resume, so that it goes on.", 0);
  flags.add("--port", to.port, "Port at 127.0.0.1 where the ranks meet; 0: a free one.", 0, 65535);
  flags.parse({arguments.begin(), dashes});
  if (to.processes == 0) throw_error(ErrorKind::usage, "--processes is missing: how many ranks train together");
  if (command.empty() || command[0] != "train")
    throw_error(ErrorKind::usage, "launch needs a training behind --, for example\n  lissome launch --processes 2 -- ",
                "train model.pt2 --data train.npz -o trained.lissome");
  for (int left = to.restarts;; --left) {
    const std::optional<RankEnd> failed = run_once(to, command, console);
    if (!failed) return 0;
    if (!failed->error.empty()) console.say(failed->error);
    console.say("rank " + std::to_string(failed->rank) + " of " + std::to_string(to.processes) + " ended with " +
                failed->end);
    if (failed->exit_code == kInterrupted) return kInterrupted;
    if (left == 0 || is_lasting(failed->exit_code) || Console::interrupted())
      return failed->exit_code < 128 ? failed->exit_code : exit_code(ErrorKind::io);
    console.say("all ranks are started again, " + std::to_string(left) + " times at most");
  }
}

}  // namespace lissome
