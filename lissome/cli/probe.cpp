#include "lissome/cli/probe.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "lissome/cli/model.h"
#include "lissome/measure.h"

extern char** environ;

namespace lissome {
namespace {

constexpr int kCalls = 20;

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t count; (count = read(file, block.data(), block.size())) > 0;)
    text.append(block.data(), static_cast<size_t>(count));
  return text;
}

}  // namespace

Json run_probe(const std::string& model, const CallFlags& call, int64_t memory) {
  const Stopwatch load;
  Session session(open_plan(model, call.threads, call.device), {.threads = call.threads, .memory = memory});
  const double load_seconds = load.seconds();
  const std::vector<NamedArray> inputs = choose_inputs(session.plan(), call.input, call.batch, call.seed, nullptr);
  const Stopwatch first;
  session.run(inputs);
  const double first_seconds = first.seconds();
  for (int i = 2; i < kCalls; ++i) session.run(inputs);
  int64_t libtorch = 0;
  if (session.plan().needs_reference()) {
    libtorch = load_torch().measure_peak([&] { session.run(inputs); });
  } else {
    session.run(inputs);
  }
  const MemoryFacts facts = session.memory();
  return {{"load_seconds", load_seconds},
          {"first_call_seconds", first_seconds},
          {"resident_peak", read_resident_memory().peak},
          {"allocator_peak", std::max(allocator_memory().peak(), facts.arena) + facts.weights -
                                 session.stream().streamed + facts.state + facts.reference + libtorch}};
}

Probe probe_model(const std::string& model, const CallFlags& call, int64_t memory) {
  std::vector<std::string> arguments = {"lissome",   "bench",
                                        "--probe",   model,
                                        "--batch",   std::to_string(call.batch),
                                        "--threads", std::to_string(call.threads),
                                        "--seed",    std::to_string(call.seed),
                                        "--device",  call.device};
  if (memory > 0) arguments.insert(arguments.end(), {"--memory", std::to_string(memory)});
  if (!call.input.empty()) arguments.insert(arguments.end(), {"--input", call.input});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  int ends[2];
  if (pipe(ends) != 0) throw_error(ErrorKind::io, "no pipe could be opened");
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
  int status = 0;
  if (failed == 0) waitpid(child, &status, 0);
  if (failed != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw_error(ErrorKind::internal, "the process that probes '", model, "' failed");
  }
  const Json json = parse_json(text, "probe");
  return {json.at("load_seconds"), json.at("first_call_seconds"), json.at("resident_peak"), json.at("allocator_peak")};
}

}  // namespace lissome
