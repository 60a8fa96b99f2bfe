// Lowers every parity case and runs it through Session, on each level of instruction sets and with one thread and two,
// at all sizes that the case has; numbers are judged against interpret() of the same program. Cases in eval mode are
// prepared first, those in train mode are lowered as they are. Saved and loaded, a plan must give the same bits; a plan
// without reference steps must allocate nothing once it is warm. Exit status 1 when any case fails.
//
//   run_lower FOLDER [NAME...]      FOLDER holds one folder for each case
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <set>

#include "case_runs.h"
#include "lissome/base.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/program.h"
#include "lissome/runtime/plan/input_check.h"
#include "lissome/runtime/session/binding.h"
#include "tests/count_allocations.h"

namespace lissome {
namespace {

// Without bf16: oneDNN's products of bf16 keep more digits than the nodes that they stand for.
constexpr const char* kLevels[] = {"vnni", "avx512", "avx2", "none"};
constexpr int kThreads[] = {1, 2};
constexpr double kLargestArena = 1.05;

struct Row {
  std::string name, mode;
  size_t native = 0, steps = 0;
  double error = 0;
  double arena = 1;       // bytes over the most that is alive at one step, the worst shape
  double binding_ms = 0;  // planning a shape, the slowest
  bool by_f64 = false;
  std::string failure;  // empty: passed
};

// What interpret() gives, run after run, state going on from each to the next.
std::vector<std::vector<c10::IValue>> interpret_runs(const Program& program, const ParityCase& parity) {
  const Program own = copy_state(program);
  InterpretOptions options;
  options.write_state = true;
  std::vector<std::vector<c10::IValue>> results;
  for (const ParityRun& run : parity.runs) {
    results.push_back(copy_values(run_program(own, parity, copy_values(run.inputs), options)));
  }
  return results;
}

std::vector<c10::IValue> run_seeded(Session& session, const ParityCase& parity, const ParityRun& run) {
  at::manual_seed(parity.seed);
  return run_session(session, copy_values(run.inputs));
}

[[noreturn]] void refuse(const std::string& where, size_t run, size_t output, const std::string& reason) {
  throw_error(ErrorKind::internal, where, ": output ", output, " of run ", run, ": ", reason);
}

void check_session(Session& session, const ParityCase& parity, const std::vector<std::vector<c10::IValue>>& expected,
                   const std::string& where, Row& row) {
  for (size_t k = 0; k < parity.runs.size(); ++k) {
    const ParityRun& run = parity.runs[k];
    const auto outputs = run_seeded(session, parity, run);
    if (outputs.size() != expected[k].size())
      throw_error(ErrorKind::internal, where, ": ", outputs.size(), " outputs instead of ", expected[k].size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (expected[k][i].isString()) continue;  // text does not leave a session
      const c10::IValue f64 = i < run.f64.size() ? run.f64[i] : c10::IValue();
      const Agreement agreement = compare_values(outputs[i], expected[k][i], f64);
      row.error = std::max(row.error, agreement.error);
      row.by_f64 = row.by_f64 || agreement.by_f64;
      if (!agreement.agrees) refuse(where, k, i, agreement.reason);
    }
  }
}

// The plan in a file gives the bits of the plan in memory.
void check_file(const Program& program, std::shared_ptr<const Plan> plan, const ParityCase& parity) {
  const std::string name = "lissome-lower-" + std::to_string(getpid()) + ".lissome";
  const std::string path = (std::filesystem::temp_directory_path() / name).string();
  save_prepared(program, *plan, path);
  Session loaded = Session::load(path, {.threads = 1}), kept(std::move(plan), {.threads = 1});
  std::filesystem::remove(path);
  for (size_t k = 0; k < parity.runs.size(); ++k) {
    const auto ours = run_seeded(kept, parity, parity.runs[k]), theirs = run_seeded(loaded, parity, parity.runs[k]);
    for (size_t i = 0; i < ours.size(); ++i) {
      const Agreement agreement = compare_values(theirs.at(i), ours[i], {});
      if (!agreement.agrees || agreement.error > 0) refuse("saved and loaded", k, i, "other bits: " + agreement.reason);
    }
  }
}

// Tensors as a session takes them; nothing where an input is something else.
std::vector<TensorView> view_inputs(const ParityRun& run, std::vector<at::Tensor>& kept) {
  std::vector<TensorView> inputs;
  for (const c10::IValue& value : run.inputs) {
    if (!value.isTensor()) return {};
    const at::Tensor& tensor = kept.emplace_back(value.toTensor().contiguous());
    inputs.push_back({dtype_of(tensor.scalar_type()), tensor.sizes().vec(), tensor.strides().vec(), tensor.data_ptr()});
  }
  return inputs;
}

// No two values share memory while both are needed, and the arena is as small as can be, or nearly so.
void check_arena(const Plan& plan, const ParityCase& parity, int threads, Row& row) {
  for (const ParityRun& run : parity.runs) {
    std::vector<at::Tensor> kept;
    const std::vector<TensorView> inputs = view_inputs(run, kept);
    if (inputs.empty()) continue;
    double quickest = INFINITY;  // of three, since others use the processor too
    for (int i = 0; i < 3; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const Binding timed(plan, match_inputs(plan, inputs), threads);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      quickest = std::min(quickest, took.count());
    }
    row.binding_ms = std::max(row.binding_ms, quickest);
    const Binding binding(plan, match_inputs(plan, inputs), threads);
    const std::string fault = verify_memory_plan(binding.buffers(), binding.arena_bytes());
    if (!fault.empty()) throw_error(ErrorKind::internal, "the arena: ", fault);
    const PlannedArena& arena = binding.arena();
    if (arena.bytes > 0)
      row.arena = std::max(row.arena, static_cast<double>(arena.bytes) / static_cast<double>(arena.least_bytes));
    if (row.arena > kLargestArena)
      throw_error(ErrorKind::internal, "an arena of ", arena.bytes, " bytes, where ", arena.least_bytes, " are alive");
  }
}

// After two runs a session that needs no libtorch takes nothing from the heap.
void check_allocations(Session& session, const ParityRun& run, const std::string& where) {
  std::vector<at::Tensor> kept;
  const std::vector<TensorView> inputs = view_inputs(run, kept);
  if (inputs.size() != run.inputs.size()) return;
  std::vector<TensorView> places;
  const std::vector<Array> outputs = session.run(inputs);
  for (const Array& output : outputs) places.push_back(output.view());
  session.run_into(inputs, places);
  const int64_t before = count_allocations();
  session.run_into(inputs, places);
  const int64_t taken = count_allocations() - before;
  if (taken > 0) throw_error(ErrorKind::internal, where, ": ", taken, " allocations in a warm run");
}

void check_case(const ParityCase& parity, Row& row) {
  const Program imported = import_pt2(parity.model());
  const Program program = parity.mode == "train" ? imported : prepare_inference(imported);
  for (const int threads : kThreads) {
    at::set_num_threads(threads);
    const auto expected = interpret_runs(program, parity);
    LowerOptions options;
    options.effort = Effort::fast;
    options.threads = threads;
    for (const char* level : kLevels) {
      mask_features(level);
      const auto plan = std::make_shared<const Plan>(lower_program(program, options));
      row.steps = plan->steps.size();
      row.native = static_cast<size_t>(std::count_if(
          plan->steps.begin(), plan->steps.end(), [](const PlanStep& step) { return step.kernel != kReferenceStep; }));
      check_arena(*plan, parity, threads, row);
      Session session(plan, {.threads = threads});
      const std::string where = std::string(level) + ", " + std::to_string(threads) + " threads";
      check_session(session, parity, expected, where, row);
      if (!plan->needs_reference()) check_allocations(session, parity.runs.back(), where);
      if (threads == 1 && level == kLevels[0]) check_file(program, plan, parity);
    }
  }
}

Row run_case(const std::string& folder) {
  Row row;
  row.name = std::filesystem::path(folder).filename().string();
  try {
    const ParityCase parity = read_parity_case(folder);
    row.mode = parity.mode;
    check_case(parity, row);
  } catch (const std::exception& error) {
    row.failure = describe_failure(error);
  }
  return row;
}

void print_row(const Row& row) {
  std::printf("%-42s %-6s %5zu of %5zu  %9.1e  %s\n", row.name.c_str(), row.mode.c_str(), row.native, row.steps,
              row.error,
              !row.failure.empty() ? "FAILED"
              : row.by_f64         ? "ok (by float64)"
                                   : "ok");
  if (!row.failure.empty()) std::printf("    %s\n", row.failure.c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace lissome

int main(int count, char** words) {
  using namespace lissome;
  if (count < 2) {
    std::fprintf(stderr, "usage: run_lower FOLDER [NAME...]\n");
    return 2;
  }
  const std::vector<std::string> folders = list_case_folders(words[1], std::set<std::string>(words + 2, words + count));
  if (folders.empty()) {
    std::fprintf(stderr, "no cases in %s\n", words[1]);
    return 1;
  }
  // As the steps that lissome computes itself: denormals count as zero.
  at::globalContext().setFlushDenormal(true);
  std::printf("%-42s %-6s %14s  %9s  %s\n", "case", "mode", "native steps", "error", "verdict");
  size_t passed = 0, native = 0;
  double arena = 1, binding_ms = 0;
  std::string slowest;
  for (const std::string& folder : folders) {
    const Row row = run_case(folder);
    print_row(row);
    passed += row.failure.empty();
    native += row.native == row.steps;
    arena = std::max(arena, row.arena);
    if (row.binding_ms > binding_ms) binding_ms = row.binding_ms, slowest = row.name;
  }
  std::printf("\n%zu of %zu lowered cases agree with their programs; %zu need no libtorch to run\n", passed,
              folders.size(), native);
  std::printf("largest arena %.3f of what is alive at one step; slowest plan for a new shape %.2f ms (%s)\n", arena,
              binding_ms, slowest.c_str());
  return passed == folders.size() ? 0 : 1;
}
