// See import_recorded.h. The code runs a few times under a listener (record_runs): on its examples, at other sizes of
// each named dimension, and on other data. The calls must be the same each time; integers that differ become
// expressions over sizes (convert_recording). At last the program must give what the code gave, in every run.
#include "lissome/program/import/import_recorded.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "lissome/program/import/convert_recording.h"
#include "lissome/program/purify/alias_sets.h"
#include "lissome/program/purify/purify.h"

namespace lissome {
namespace {

// The same ops in the same order: differences are of rounding alone, where memory is laid out in another way.
constexpr double kRelativeTolerance = 1e-4;
// Of the largest number of all results: sums that cancel out, as gradients of scales do, are rounding errors.
constexpr double kRoundingNoise = 1e-8;
// Elements that are compared at a time: comparing makes several copies.
constexpr int64_t kPiece = int64_t{1} << 20;

double find_largest(const at::Tensor& tensor) {
  double largest = 0;
  for (const at::Tensor& piece : tensor.split(kPiece)) {
    largest = std::max(largest, piece.abs().nan_to_num(0, 0, 0).max().item().toDouble());
  }
  return largest;
}

// `noise`: a difference that says nothing.
bool is_close(const at::Tensor& got, const at::Tensor& expected, double noise) {
  if (!got.defined() || !expected.defined()) return got.defined() == expected.defined();
  if (got.sizes() != expected.sizes() || got.scalar_type() != expected.scalar_type()) return false;
  if (got.numel() == 0) return true;
  const at::Tensor flat = got.reshape(-1), flat_expected = expected.reshape(-1);
  const bool exact = !got.is_floating_point() && !got.is_complex();
  const double tolerance = exact ? 0 : std::max(noise, kRelativeTolerance * find_largest(flat_expected));
  const std::vector<at::Tensor> pieces = flat.split(kPiece), expected_pieces = flat_expected.split(kPiece);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!at::allclose(pieces[i], expected_pieces[i], 0, tolerance, true)) return false;
  }
  return true;
}

double find_noise(const std::vector<at::Tensor>& results) {
  double largest = 0;
  for (const at::Tensor& result : results) {
    if (result.defined() && result.is_floating_point() && result.numel() > 0)
      largest = std::max(largest, find_largest(result.reshape(-1)));
  }
  return kRoundingNoise * largest;
}

std::string describe_sizes(const ModuleRun& run) { return run.sizes.empty() ? "" : " at " + print_sizes(run.sizes); }

[[noreturn]] void refuse_result(const ModuleRun& run, const std::string& what) {
  throw_error(
      ErrorKind::unsupported, "the program that was recorded gives another ", what, " than the module",
      describe_sizes(run),
      ": the module does something that no op shows (plain C++ on a tensor's memory, another thread, autocast)");
}

// What the program writes is what the module wrote.
void check_writes(const Program& program, const std::vector<at::Tensor>& written, const ModuleRun& run,
                  std::map<std::string, at::Tensor> expected) {
  for (size_t i = 0; i < written.size(); ++i) {
    const ValueId target = program.writes[i].target;
    const Weight* weight = program.find_weight(target);
    std::string name = weight == nullptr ? std::string() : weight->name;
    for (const ProgramInput& input : program.inputs) {
      if (input.value == target) name = input.name;
    }
    const auto found = expected.find(name);
    if (found == expected.end()) continue;  // the same contents as before
    if (!is_close(written[i], found->second, 0)) refuse_result(run, "state '" + name + "'");
    expected.erase(found);
  }
  // The rest is tied to what was written, or written by nodes that stay as they are.
  const AliasSets sets(program);
  const auto is_seen_to = [&](ValueId id) {
    return sets.is_written(id) ||
           std::any_of(program.writes.begin(), program.writes.end(),
                       [&](const StateWrite& write) { return sets.may_share(write.target, id); });
  };
  for (const auto& [name, tensor] : expected) {
    const auto id = program.find_value(name);
    if (!id || !is_seen_to(*id)) refuse_result(run, "state '" + name + "'");
  }
}

void check_run(const Program& program, const ModuleRun& run, ModuleRunner& runner) {
  RunResults expected = runner.repeat(run);
  std::vector<at::Tensor> written;
  InterpretOptions options;
  options.written = &written;
  std::vector<c10::IValue> inputs, outputs;
  for (const at::Tensor& input : run.inputs) inputs.emplace_back(input.clone());
  try {
    outputs = interpret(program, std::move(inputs), options);
  } catch (const Error& error) {
    throw_error(ErrorKind::unsupported, "the module runs", describe_sizes(run),
                ", and its program does not: ", error.message());
  }
  const double noise = find_noise(expected.outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor got = outputs[i].isNone() ? at::Tensor() : outputs[i].toTensor();
    if (!is_close(got, expected.outputs.at(i), noise)) refuse_result(run, program.outputs[i].name);
  }
  check_writes(program, written, run, std::move(expected.written));
  runner.restore();
}

Program convert_runs(const RecordedModule& module, const std::vector<TracedInput>& inputs, const ModuleRuns& runs) {
  Program program = convert_recordings(module, inputs, runs.recorded);
  verify_program(program, Stage::imported);
  purify(program);
  return program;
}

void check_runs(const Program& program, const ModuleRuns& runs, ModuleRunner& runner) {
  for (const auto* list : {&runs.recorded, &runs.held_out}) {
    for (const ModuleRun& run : *list) check_run(program, run, runner);
  }
}

// Of tensors that no op made, those that follow from data or sizes differ between runs; those that follow from weights,
// which training changes, differ where the weights do.
void check_constants(const Program& program, const RecordedModule& module, const ModuleRuns& runs,
                     ModuleRunner& runner) {
  const bool has_constants = std::any_of(program.weights.begin(), program.weights.end(), [&](const Weight& weight) {
    return std::none_of(module.state.begin(), module.state.end(),
                        [&](const StateTensor& state) { return state.name == weight.name; });
  });
  if (!records_gradients(module.level) || !has_constants) return;
  runner.move_parameters();
  check_run(program, runs.recorded.front(), runner);
}

// Where a size is 1, PyTorch's formulas skip what changes nothing there (sums over that dimension, expands, copies), so
// that the calls are others. Moves such runs to those that are compared by their results alone. False where too few
// sizes are left to tell expressions over them apart.
bool hold_out_ones(ModuleRuns& runs) {
  const auto has_one = [](const ModuleRun& run) {
    return std::any_of(run.sizes.begin(), run.sizes.end(), [](const auto& size) { return size.second == 1; });
  };
  const auto ones = std::stable_partition(runs.recorded.begin(), runs.recorded.end(), std::not_fn(has_one));
  if (ones == runs.recorded.end() || ones - runs.recorded.begin() < 3) return false;
  std::move(ones, runs.recorded.end(), std::back_inserter(runs.held_out));
  runs.recorded.erase(ones, runs.recorded.end());
  return true;
}

// One program for all sizes: that of every run, else that of the runs without a size of 1, if it gives what the module
// gives there too.
Program find_program(const RecordedModule& module, const std::vector<TracedInput>& inputs, ModuleRuns& runs,
                     ModuleRunner& runner) {
  try {
    Program program = convert_runs(module, inputs, runs);
    check_runs(program, runs, runner);
    return program;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported || !hold_out_ones(runs)) throw;
    Program program = convert_runs(module, inputs, runs);
    try {
      check_runs(program, runs, runner);
    } catch (const Error&) {
      throw error;
    }
    return program;
  }
}

}  // namespace

Program import_recorded(const RecordedModule& module, const std::vector<TracedInput>& inputs,
                        const ForwardMany& forward) {
  register_ops();
  ModuleRunner runner(module, inputs, forward);
  ModuleRuns runs = runner.record();
  Program program = find_program(module, inputs, runs, runner);
  check_constants(program, module, runs, runner);
  std::vector<c10::IValue> examples;
  for (const at::Tensor& input : runs.recorded.front().inputs) examples.emplace_back(input);
  infer_types(program, examples);
  verify_program(program, Stage::imported);
  return program;
}

}  // namespace lissome
