// Face of lower: from a program to a plan. Every node has an ordered list of kernels that could compute it; each says
// whether it accepts the node or why not; those that accept are timed on real sizes; every list ends in the reference,
// which is the node itself, run by libtorch.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/runtime.h"

namespace lissome {

enum class Effort : uint8_t {
  fast,    // nothing is timed: the first kernel that accepts
  normal,  // kernels that accept are timed once per distinct node
  max,     // longer, and wider: equal nodes may get different kernels, as their neighbours suit
};

// Where a kernel accepts a node that matches, it is taken unmeasured; the first pattern that matches counts. Unknown
// kernel names are a usage error.
struct ForcedKernel {
  std::string pattern;  // shell-style, over op ("aten::linear") and result name; or a word of the op: "attention"
  std::string kernel;   // a name from list_kernel_names(); "ours": the first that needs no libtorch
};

struct LowerOptions {
  Effort effort = Effort::normal;
  int threads = 0;  // 0: one for each core that it may use
  std::vector<ForcedKernel> forced;
  // Another than "cpu", such as "cuda" or "cuda:1": every node runs there through libtorch, captured as one graph
  // for each set of input sizes where the program allows it. See check_device().
  std::string device = "cpu";
  // Example inputs in the program's order: their sizes are what timing uses. Without them every named dimension takes
  // its smallest allowed size, at least 1.
  std::vector<c10::IValue> inputs;
  // Outputs leave in row order, laid out by a step where they are made otherwise. Off for who takes them as they lie.
  bool dense_outputs = true;
  // Told which kernel is about to be tried alone on which node (the name of its first result). What it throws is the
  // failure of that kernel, which is dropped, as when the kernel fails itself.
  std::function<void(const std::string& node, const std::string& kernel)> on_trial;
  // Polled while kernels are timed; may be empty. True: what was chosen so far is taken, and not cached.
  std::function<bool()> should_stop;
};

// `program` is left alone; its weights are shared, packed copies are made where a kernel wants them. Never fails for a
// program that interpret() runs, except with over_budget.
Plan lower_program(const Program& program);  // with the defaults
Plan lower_program(const Program& program, const LowerOptions& options);

// Throws usage for a name that is no device ("cpu", "cuda", "cuda:1"), unsupported for one that is not there.
void check_device(const std::string& name);

// Throws usage for another word than fast, normal or max.
Effort parse_effort(const std::string& word);

// Names for `--kernel`: "reference", "linear_f32", "ours", ...
std::vector<std::string> list_kernel_names();

// What a finished file holds. A plan runs without its program; optimizing, training and lowering again need both.
enum class FileContents : uint8_t { plan, plan_and_program };

// One .lissome file that Session::load runs, in memory and written.
ModelFile pack_prepared(const Program& program, const Plan& plan, FileContents contents);
void save_prepared(const Program& program, const Plan& plan, const std::string& path,
                   FileContents contents = FileContents::plan);

// A weight that a step reads in a form larger than the plain one, for speed: a finished file holds that form.
struct LargerForm {
  std::string node, kernel;
  int64_t bytes = 0, plain_bytes = 0;
  double nanoseconds = 0, plain_nanoseconds = 0;  // of the step, and on the quickest other kernel; 0 where not timed
};
std::vector<LargerForm> list_larger_forms(const Plan& plan);
std::string describe_larger_form(const LargerForm& form);  // one sentence, without a full stop

// Torch's tensors and numbers as a session takes them, in the plan's order. Dense tensors are lent, others copied;
// throws invalid_input for other values.
class LentInputs {
 public:
  explicit LentInputs(const std::vector<c10::IValue>& inputs);
  std::span<const TensorView> views() const { return views_; }

 private:
  std::vector<Array> kept_;  // of numbers, and of tensors that are not dense
  std::vector<TensorView> views_;
};
// What a session returned, as torch's values; none for outputs that are none.
std::vector<c10::IValue> read_outputs(const Plan& plan, const std::vector<Array>& arrays);

// A session driven with torch tensors, without copying: inputs are lent (made dense first where they are not), outputs
// own their memory. None for outputs that are none.
std::vector<c10::IValue> run_session(Session& session, const std::vector<c10::IValue>& inputs,
                                     const StepSink* sink = nullptr);

}  // namespace lissome
