#include "lissome/cli/probe.h"

#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>

#include "lissome/cli/console.h"
#include "lissome/cli/model.h"
#include "lissome/measure.h"

extern char** environ;

namespace lissome {
namespace {

constexpr int kCalls = 20;
constexpr int kMillisecondsBetweenLooks = 50;

// Reads until the other end is closed or this program is interrupted.
std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> block;
  pollfd ready{file, POLLIN, 0};
  while (!Console::interrupted()) {
    if (poll(&ready, 1, kMillisecondsBetweenLooks) <= 0) continue;
    const ssize_t count = read(file, block.data(), block.size());
    if (count <= 0) break;
    text.append(block.data(), static_cast<size_t>(count));
  }
  return text;
}

}  // namespace

Json run_probe(const std::string& model, const CallFlags& call, const SessionFlags& asked) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // ends this process with its parent
  const Stopwatch load;
  const std::shared_ptr<const Plan> plan = open_plan(model, call.threads, call.device);
  double load_seconds = load.seconds();
  const std::vector<NamedArray> inputs = choose_inputs(*plan, call.input, call.batch, call.seed, {});
  const std::vector<TensorView> views = view_arrays(inputs);
  const Stopwatch open;
  AskedSession session(plan, call.threads, asked, views);
  load_seconds += open.seconds();
  const Stopwatch first;
  session.run(views);
  const double first_seconds = first.seconds();
  for (int i = 2; i < kCalls; ++i) session.run(views);
  int64_t libtorch = 0;
  if (plan->needs_reference()) {
    libtorch = load_torch().measure_peak([&] { session.run(views); });
  } else {
    session.run(views);
  }
  const MemoryFacts facts = session.session().memory();
  return {{"load_seconds", load_seconds},
          {"first_call_seconds", first_seconds},
          {"resident_peak", read_resident_memory().peak},
          {"allocator_peak", std::max(allocator_memory().peak(), facts.arena) + facts.weights -
                                 session.session().stream().streamed + facts.state + facts.reference + libtorch}};
}

std::optional<Probe> probe_model(const std::string& model, const CallFlags& call, const SessionFlags& asked) {
  std::vector<std::string> arguments = {"lissome",   "bench",
                                        "--probe",   model,
                                        "--batch",   std::to_string(call.batch),
                                        "--threads", std::to_string(call.threads),
                                        "--seed",    std::to_string(call.seed),
                                        "--device",  call.device};
  if (!asked.memory.empty()) arguments.insert(arguments.end(), {"--memory", asked.memory});
  if (!asked.buckets.empty()) arguments.insert(arguments.end(), {"--buckets", asked.buckets});
  for (const std::string& pad : asked.pads) arguments.insert(arguments.end(), {"--pad", pad});
  if (!call.input.empty()) arguments.insert(arguments.end(), {"--input", call.input});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  int ends[2];
  if (pipe(ends) != 0) throw_error(ErrorKind::io, "a pipe could not be opened");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const std::string text = failed == 0 ? read_all(ends[0]) : std::string();
  close(ends[0]);
  const bool interrupted = Console::interrupted();
  if (interrupted && failed == 0) kill(child, SIGTERM);
  int status = 0;
  if (failed == 0) waitpid(child, &status, 0);
  if (interrupted) return std::nullopt;
  if (failed != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw_error(ErrorKind::internal, "the process that probes '", model, "' failed");
  }
  const Json json = parse_json(text, "probe");
  return Probe{json.at("load_seconds"), json.at("first_call_seconds"), json.at("resident_peak"),
               json.at("allocator_peak")};
}

}  // namespace lissome
