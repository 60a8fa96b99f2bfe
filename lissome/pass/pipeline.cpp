// The one table of passes and the driver: verify after each, clean after each change, compare numbers when asked.
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cmath>

#include "lissome/pass.h"
#include "lissome/pass/compare_numbers.h"
#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

constexpr Pass kPasses[] = {
    {"canonicalize", canonicalize, "one spelling for each meaning"},
    {"remove_satisfied_checks", remove_satisfied_checks, "drop checks that hold by the types"},
    {"remove_identities", remove_identities, "drop nodes that return their input"},
    {"remove_copies", remove_copies, "drop clone and contiguous"},
    {"remove_casts", remove_casts, "drop casts that lose nothing"},
    {"replace_repeat_with_expand", replace_repeat_with_expand, "repeat a size of one without copying"},
    {"fold_constants", fold_constants, "compute what depends on weights alone"},
    {"simplify_arithmetic", simplify_arithmetic, "divisions to multiplications, small powers to products"},
    {"merge_common_subexpressions", merge_common_subexpressions, "compute equal things once"},
    {"restore_matmul", restore_matmul, "decomposed products and einsum to matmul"},
    {"fuse_matmul_add", fuse_matmul_add, "matmul with constant weights and add to linear"},
    {"merge_layout_chains", merge_layout_chains, "combine chains of transposes and reshapes"},
    {"fold_batch_norm", fold_batch_norm, "batch norm into the weights before it"},
    {"convert_pointwise_conv", convert_pointwise_conv, "1x1 convolution to linear where that moves nothing"},
    {"fuse_gelu", fuse_gelu, "GELU written out by hand"},
    {"fuse_silu", fuse_silu, "SiLU and sigmoid written out by hand"},
    {"fuse_hard_activation", fuse_hard_activation, "ReLU, ReLU6 and the hard activations written as clamps"},
    {"fuse_layer_norm", fuse_layer_norm, "layer norm written out by hand"},
    {"fuse_rms_norm", fuse_rms_norm, "RMS norm written out by hand"},
    {"fuse_attention", fuse_attention, "attention written out by hand"},
    // Again: a key that was transposed for the product is transposed back for attention.
    {"merge_layout_chains", merge_layout_chains, "combine chains of transposes and reshapes"},
    {"fold_scale", fold_scale, "constant scales and offsets into the weights before them"},
    {"merge_sibling_linears", merge_sibling_linears, "linears of one input into one"},
    {"merge_equal_weights", merge_equal_weights, "one copy of equal weights"},
    {"fuse_conv_activation", fuse_conv_activation, "activation and residual into the convolution"},
    {"fuse_linear_activation", fuse_linear_activation, "activation and residual into the linear"},
};

// Passes enter the bodies of control ops; a body that changed is a new program, since bodies are shared.
int run_everywhere(const Pass& pass, Program& program) {
  int rewrites = pass.run(program);
  for (Node& node : program.nodes) {
    for (std::shared_ptr<const Program>& body : node.bodies) {
      Program changed = *body;
      const int inner = run_everywhere(pass, changed);
      if (inner == 0) continue;
      remove_dead_nodes(changed);
      remove_unread_weights(changed);
      body = std::make_shared<const Program>(std::move(changed));
      rewrites += inner;
    }
  }
  return rewrites;
}

void check_disabled(const std::vector<std::string>& disabled) {
  std::vector<std::string> known;
  for (const Pass& pass : kPasses) known.emplace_back(pass.name);
  for (const std::string& name : disabled) {
    if (find_pass(name) != nullptr) continue;
    const std::string nearest = find_nearest(name, known);
    throw_error(ErrorKind::usage, "there is no pass '", name, "'",
                nearest.empty() ? std::string() : "; did you mean '" + nearest + "'?", "\nPasses: ", join(known, ", "));
  }
}

}  // namespace

std::span<const Pass> list_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kPasses), std::end(kPasses), [&](const Pass& p) { return p.name == name; });
  return found == std::end(kPasses) ? nullptr : &*found;
}

std::vector<PassResult> run_pipeline(Program& program, const PipelineOptions& options) {
  check_disabled(options.disabled);
  std::vector<PassResult> results;
  for (const Pass& pass : kPasses) {
    if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end()) continue;
    const Span span("pass." + std::string(pass.name));
    const Stopwatch watch;
    const Program before = program;
    PassResult result;
    result.name = pass.name;
    result.rewrites = run_everywhere(pass, program);
    if (result.rewrites > 0) {
      remove_dead_nodes(program);
      remove_unread_weights(program);
      verify_program(program, Stage::optimized);
      result.diff = diff_programs(before, program);
      if (!options.check_inputs.empty()) compare_numbers(before, program, options.check_inputs, pass.name);
    }
    result.seconds = watch.seconds();
    results.push_back(std::move(result));
  }
  return results;
}

Program prepare_inference(const Program& original, const PipelineOptions& options, std::vector<PassResult>* results) {
  Program program = original;
  convert_to_inference(program);
  remove_dead_nodes(program);
  verify_program(program, Stage::optimized);
  std::vector<PassResult> done = run_pipeline(program, options);
  if (results != nullptr) *results = std::move(done);
  return program;
}

}  // namespace lissome
