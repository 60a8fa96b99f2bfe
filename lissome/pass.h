// Face of pass: exact rewrites of programs (no data, no search), the table that orders them, and the driver.
// One pass = one free function that returns its number of rewrites. Every pass leaves a program that verifies and whose
// results are the same up to rounding.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lissome/measure.h"
#include "lissome/program.h"

namespace lissome {

struct Pass {
  std::string_view name;  // the flag that switches it off, the span, the report's row
  int (*run)(Program&);
  std::string_view summary;  // one line for people
};

// In the order in which they run.
std::span<const Pass> list_passes();
const Pass* find_pass(std::string_view name);  // null when absent

struct PipelineOptions {
  std::vector<std::string> disabled;  // names of passes to leave out; an unknown name is a usage error
  // When not empty, numbers before and after each pass are compared on these inputs (a debugging aid, slow); a
  // difference beyond rounding is an internal error that names the pass.
  std::vector<c10::IValue> check_inputs;
};
struct PassResult {
  std::string name;
  int rewrites = 0;
  double seconds = 0;
  std::string diff;  // of the program text, where it changed
};
bool is_disabled(const std::vector<std::string>& disabled, std::string_view pass);
// Throws usage, with the nearest name, when one of `disabled` is not among `known`; `what` says what they are: "pass".
void check_pass_names(std::string_view what, const std::vector<std::string>& known,
                      const std::vector<std::string>& disabled);
// Runs one rewrite, which returns how many it did, and `clean_up`, with the program before, when there were any.
PassResult run_watched(std::string_view name, Program& program, const std::function<int(Program&)>& rewrite,
                       const std::function<void(const Program& before)>& clean_up);
// Runs these passes in this order, in the bodies of control ops too, verifying and dropping what nothing reads any more
// after every change. Unknown is a disabled name that is none of theirs.
std::vector<PassResult> run_passes(std::span<const Pass> passes, Program& program, const PipelineOptions& options);
// The table, again and again until it changes nothing, so that running it twice is running it once. One result for each
// name in the table, all its turns together.
std::vector<PassResult> run_pipeline(Program& program);  // with the defaults
std::vector<PassResult> run_pipeline(Program& program, const PipelineOptions& options);

// The eval form: dropout is identity, batch norm reads its running statistics, training counters are gone.
void convert_to_inference(Program& program);
// Notes for the user on a program before its eval form is made: that it is in train form, and that each call will go on
// updating state. Empty for most.
std::vector<std::string> describe_eval_form(const Program& original);

// Eval form, folded and fused: everything that needs neither data nor search. `original` is left alone.
Program prepare_inference(const Program& original);  // with the defaults
Program prepare_inference(const Program& original, const PipelineOptions& options,
                          std::vector<PassResult>* results = nullptr);

// aten::lstm and gru with constant f32 weights -> for each layer a linear of all steps, and lissome::lstm_layer or
// gru_layer. No pass of the table: only who makes weights smaller wants them apart. Returns the number of rewrites.
int split_recurrent(Program& program);

// The pass fuse_attention where gradients are wanted: not with a mask that may lower all scores of a row by a large
// finite number (-1e9), for which the derivative of attention is not exact. Returns the number of rewrites.
int fuse_differentiable_attention(Program& program);

// Weights that no node, output or write mentions go; returns how many.
int remove_unread_weights(Program& program);

}  // namespace lissome
