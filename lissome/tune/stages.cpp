#include "lissome/tune/stages.h"

#include <ATen/core/ivalue.h>

#include <algorithm>

#include "lissome/compress.h"
#include "lissome/pass.h"

namespace lissome {
namespace {

// Passes that fuse or rewrite what computes; the others only clean.
bool is_fusing(std::string_view name) {
  return name.starts_with("fuse_") || name.starts_with("fold_batch") || name.starts_with("merge_sibling") ||
         name.starts_with("convert_");
}

std::vector<std::string> list_fusing_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : list_passes()) {
    if (is_fusing(pass.name)) names.emplace_back(pass.name);
  }
  return names;
}

Proposal prepare(const Search& search, Variant& original, const std::vector<std::string>& disabled) {
  PipelineOptions options;
  options.disabled = disabled;
  std::vector<PassResult> results;
  Proposal proposal;
  proposal.program = std::make_shared<const Program>(prepare_inference(*original.program, options, &results));
  proposal.lowering = search.best().lowering;
  for (const PassResult& result : results) {
    if (result.rewrites > 0) proposal.notes.push_back(result.name + ": " + std::to_string(result.rewrites) + " rewrites");
  }
  return proposal;
}

// The fused float program that precision starts from; precision never stacks on a lossy step.
std::shared_ptr<const Program> prepare_float(Search& search) {
  return std::make_shared<const Program>(prepare_inference(*search.original().program));
}

struct Precision {
  std::string name;
  bool int8 = false, dynamic = false, bf16 = false;
};

Proposal propose_precision(Search& search, const std::shared_ptr<const Program>& base, const Precision& precision,
                           double least_signal_to_noise) {
  Proposal proposal;
  proposal.lowering = search.best().lowering;
  Program program = *base;
  if (precision.int8) {
    QuantizeOptions options;
    options.dynamic_linears = precision.dynamic;
    options.least_signal_to_noise = least_signal_to_noise;
    Quantized quantized = quantize_int8(program, search.calibration_batches(), options, search.control());
    int done = 0;
    for (const QuantizedLayer& layer : quantized.layers) {
      done += layer.quantized;
      if (!layer.quantized) {
        const std::string where = layer.origin != nullptr && !layer.origin->module.empty() ? layer.origin->module : layer.name;
        proposal.notes.push_back(where + " stays in float: " + layer.reason);
      }
    }
    proposal.notes.insert(proposal.notes.begin(), std::to_string(done) + " of " + std::to_string(quantized.layers.size()) +
                                                      " layers in int8");
    if (done == 0) throw_error(ErrorKind::unsupported, "no layer can be int8");
    program = std::move(quantized.program);
  }
  if (precision.bf16) program = convert_bf16(program);
  proposal.program = std::make_shared<const Program>(std::move(program));
  return proposal;
}

}  // namespace

void run_basic_stage(Search& search) {
  search.try_step("basic", "clean", false, [&] { return prepare(search, search.original(), list_fusing_passes()); });
  search.try_step("basic", "fuse", false, [&] { return prepare(search, search.original(), {}); });
}

void run_memory_stage(Search& search) {
  const auto lower_natively = [&] {
    Proposal proposal;
    proposal.program = prepare_float(search);
    proposal.lowering = search.best().lowering;
    proposal.lowering.forced.clear();
    return proposal;
  };
  search.try_step("memory", "planned memory, layout, own kernels", false, lower_natively);
}

void run_computation_stage(Search& search) {
  if (!search.has_data()) {
    search.skip_step("computation", "bf16 and int8", "lossy steps need data to be judged on: give --data");
    return;
  }
  const std::shared_ptr<const Program> base = prepare_float(search);
  std::vector<Precision> precisions;
  if (has(Feature::avx512_bf16)) {
    precisions.push_back({"bf16", false, false, true});
  } else {
    search.skip_step("computation", "bf16", "this processor has no bf16 products");
  }
  precisions.push_back({"int8", true, false, false});
  precisions.push_back({"int8, scales found while running", true, true, false});
  if (has(Feature::avx512_bf16)) {
    precisions.push_back({"int8 and bf16", true, false, true});
    precisions.push_back({"int8, scales found while running, and bf16", true, true, true});
  }
  for (const Precision& precision : precisions) {
    // When the loss is what refuses int8, fewer layers may still pay: each try asks for 6 dB more from every layer.
    for (double signal_to_noise = 18; signal_to_noise <= 36; signal_to_noise += 6) {
      std::string name = precision.name;
      if (signal_to_noise > 18) name += ", layers over " + std::to_string(static_cast<int>(signal_to_noise)) + " dB";
      const bool accepted = search.try_step("computation", name, true, [&] {
        return propose_precision(search, base, precision, signal_to_noise);
      });
      if (accepted || !precision.int8 || !search.last_loss()) break;
    }
  }
}

void run_compilation_stage(Search& search) {
  search.try_step("compilation", "kernels chosen by timing", false, [&] {
    Proposal proposal;
    proposal.program = search.best().program;
    proposal.lowering = search.best().lowering;
    proposal.lowering.forced.clear();
    proposal.lowering.effort = Effort::normal;
    return proposal;
  });
}

void run_deployment_stage(Search& search) {
  const int most = usable_threads();
  if (search.options().threads != 0 || most == 1) return;
  search.try_step("deployment", "one thread", false, [&] {
    Proposal proposal;
    proposal.program = search.best().program;
    proposal.lowering = search.best().lowering;
    proposal.lowering.threads = 1;
    return proposal;
  });
}

}  // namespace lissome
