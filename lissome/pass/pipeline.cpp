// The one table of passes and the driver: verify after each, clean after each change, compare numbers when asked.
#include <ATen/core/ivalue.h>

#include <algorithm>

#include "lissome/pass/compare_numbers.h"
#include "lissome/pass/passes.h"
#include "lissome/pass/rewrite.h"

namespace lissome {
namespace {

constexpr Pass kPasses[] = {
    {"remove_dead_nodes", remove_dead_nodes, "drop nodes that nothing reads"},
    {"canonicalize", canonicalize, "one spelling for each meaning"},
    {"remove_satisfied_checks", remove_satisfied_checks, "drop checks that hold by the types"},
    {"remove_identities", remove_identities, "drop nodes that return their input"},
    {"remove_copies", remove_copies, "drop clone and contiguous"},
    {"remove_casts", remove_casts, "drop casts that lose nothing"},
    {"replace_repeat_with_expand", replace_repeat_with_expand, "repeat a size of one without copying"},
    {"fold_constants", fold_constants, "compute what depends on weights alone"},
    {"move_size_reads", move_size_reads, "read sizes off the inputs"},
    {"simplify_arithmetic", simplify_arithmetic, "divisions to multiplications, small powers to products"},
    {"merge_common_subexpressions", merge_common_subexpressions, "compute equal things once"},
    {"restore_quantization", restore_quantization, "fake quantization to quantize and dequantize"},
    {"restore_matmul", restore_matmul, "decomposed products and einsum to matmul"},
    {"fuse_matmul_add", fuse_matmul_add, "matmul with constant weights and add to linear"},
    {"move_permutations", move_permutations, "permutations of rows past linears, to where they merge"},
    {"merge_layout_chains", merge_layout_chains, "combine chains of transposes and reshapes"},
    {"fold_batch_norm", fold_batch_norm, "batch norm into the weights before it"},
    {"convert_pointwise_conv", convert_pointwise_conv, "1x1 convolution to linear where that moves nothing"},
    {"fuse_gelu", fuse_gelu, "GELU written out by hand"},
    {"fuse_silu", fuse_silu, "SiLU and sigmoid written out by hand"},
    {"fuse_hard_activation", fuse_hard_activation, "ReLU, ReLU6 and the hard activations written as clamps"},
    {"fuse_layer_norm", fuse_layer_norm, "layer norm written out by hand"},
    {"fuse_rms_norm", fuse_rms_norm, "RMS norm written out by hand"},
    {"fuse_softmax", fuse_softmax, "softmax written out by hand"},
    {"fuse_attention", fuse_attention, "attention written out by hand"},
    // Again: a key that was transposed for the product is transposed back for attention.
    {"merge_layout_chains", merge_layout_chains, "combine chains of transposes and reshapes"},
    {"fold_scale", fold_scale, "constant scales and offsets into the weights before them"},
    {"convert_batch_norm", convert_batch_norm, "batch norm that stays to a product and a sum per channel"},
    {"merge_sibling_linears", merge_sibling_linears, "linears of one input into one"},
    {"merge_equal_weights", merge_equal_weights, "one copy of equal weights"},
    {"fuse_padding", fuse_padding, "zeros around an image into the convolution"},
    {"fuse_conv_activation", fuse_conv_activation, "activation and residual into the convolution"},
    {"stack_conv_frames", stack_conv_frames, "3-d convolution to a 2-d one over stacked frames"},
    {"fuse_linear_activation", fuse_linear_activation, "activation and residual into the linear"},
    {"fold_product_casts", fold_product_casts, "casts around bf16 products of computed weights into them"},
};

constexpr int kRounds = 4;  // far more than ever needed

// From here on a value is its logical elements. Any pass may change how they lie in memory, so nothing may depend on
// it: a view of strides becomes a reshape, what looks at memory gets a copy of its own in row-major order.
void release_strides(Program& program) {
  Rewriter rewriter(program);
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node node = rewriter.node(position);
    if (node.is("aten::view") || node.is("aten::_unsafe_view")) {
      rewriter.replace_node(position, Op::find("aten::reshape"), {node.argument("self"), node.argument("size")});
    } else if (reads_memory(node) && !node.is("aten::as_strided")) {
      const Argument& self = node.arguments.front();
      if (rewriter.producer(self, "aten::contiguous") != nullptr) continue;
      ArgumentList arguments = node.arguments;
      arguments.front() =
          rewriter.insert_before(position, Op::find("aten::contiguous"), {self}, {rewriter.type_of(self)}, node.origin);
      rewriter.replace_node(position, node.op, std::move(arguments));
    }
  }
  rewriter.finish();
  for (Node& node : program.nodes) {
    for (std::shared_ptr<const Program>& body : node.bodies) {
      Program changed = *body;
      release_strides(changed);
      body = std::make_shared<const Program>(std::move(changed));
    }
  }
}

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

std::vector<std::string> list_names(std::span<const Pass> passes) {
  std::vector<std::string> names;
  for (const Pass& pass : passes) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.emplace_back(pass.name);
  }
  return names;
}

PassResult run_one(const Pass& pass, Program& program, const PipelineOptions& options) {
  const auto rewrite = [&](Program& to) { return run_everywhere(pass, to); };
  return run_watched(pass.name, program, rewrite, [&](const Program& before) {
    remove_dead_nodes(program);
    remove_unread_weights(program);
    verify_program(program, Stage::optimized);
    if (!options.check_inputs.empty()) compare_numbers(before, program, options.check_inputs, pass.name);
  });
}

}  // namespace

std::span<const Pass> list_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kPasses), std::end(kPasses), [&](const Pass& p) { return p.name == name; });
  return found == std::end(kPasses) ? nullptr : &*found;
}

bool is_disabled(const std::vector<std::string>& disabled, std::string_view pass) {
  return std::find(disabled.begin(), disabled.end(), pass) != disabled.end();
}

void check_pass_names(std::string_view what, const std::vector<std::string>& known,
                      const std::vector<std::string>& disabled) {
  for (const std::string& name : disabled) {
    if (is_disabled(known, name)) continue;
    const std::string nearest = find_nearest(name, known);
    std::string heading = std::string(what) + "es: ";
    heading[0] = static_cast<char>(std::toupper(heading[0]));
    throw_error(ErrorKind::usage, "there is no ", what, " '", name, "'",
                nearest.empty() ? std::string() : "; did you mean '" + nearest + "'?", "\n", heading,
                join(known, ", "));
  }
}

PassResult run_watched(std::string_view name, Program& program, const std::function<int(Program&)>& rewrite,
                       const std::function<void(const Program& before)>& clean_up) {
  const Span span("pass." + std::string(name));
  const Stopwatch watch;
  const Program before = program;
  PassResult result;
  result.name = name;
  result.rewrites = rewrite(program);
  if (result.rewrites > 0) {
    clean_up(before);
    result.diff = diff_programs(before, program);
  }
  result.seconds = watch.seconds();
  return result;
}

std::vector<PassResult> run_passes(std::span<const Pass> passes, Program& program, const PipelineOptions& options) {
  check_pass_names("pass", list_names(passes), options.disabled);
  release_strides(program);
  std::vector<PassResult> results;
  for (const Pass& pass : passes) {
    if (!is_disabled(options.disabled, pass.name)) results.push_back(run_one(pass, program, options));
  }
  return results;
}

std::vector<PassResult> run_pipeline(Program& program) { return run_pipeline(program, {}); }

// What one pass leaves may be what an earlier one looks for, so the table runs until it changes nothing.
std::vector<PassResult> run_pipeline(Program& program, const PipelineOptions& options) {
  std::vector<PassResult> results;
  for (int round = 0; round < kRounds; ++round) {
    int rewrites = 0;
    for (PassResult& result : run_passes(kPasses, program, options)) {
      rewrites += result.rewrites;
      const auto row =
          std::find_if(results.begin(), results.end(), [&](const PassResult& one) { return one.name == result.name; });
      if (row == results.end()) {
        results.push_back(std::move(result));
      } else {
        row->rewrites += result.rewrites;
        row->seconds += result.seconds;
        row->diff += result.diff;
      }
    }
    if (rewrites == 0) break;
  }
  return results;
}

Program prepare_inference(const Program& original) { return prepare_inference(original, {}); }

Program prepare_inference(const Program& original, const PipelineOptions& options, std::vector<PassResult>* results) {
  Program program = original;
  convert_to_inference(program);
  remove_dead_nodes(program);
  remove_unread_weights(program);
  verify_program(program, Stage::optimized);
  std::vector<PassResult> done = run_pipeline(program, options);
  if (results != nullptr) *results = std::move(done);
  return program;
}

}  // namespace lissome
