#include "lissome/tune/stages.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "lissome/compress.h"
#include "lissome/runtime.h"

namespace lissome {
namespace {

std::string describe(const Smoothing& smoothing) {
  char strength[16];
  std::snprintf(strength, sizeof strength, "%.1f", smoothing.strength);
  return "at strength " + std::string(strength) + " by " + smoothing.place + ": " +
         format_decibels(smoothing.signal_to_noise_before) + " -> " + format_decibels(smoothing.signal_to_noise_after);
}

// A lower precision, and the data that its tries share: calibration runs once.
struct Precision {
  const char* name;
  bool int8 = false, dynamic = false, bf16 = false;

  bool fits(const std::optional<Dtype>& wanted) const { return !wanted || *wanted == (int8 ? Dtype::i8 : Dtype::bf16); }
};

class PrecisionTrials {
 public:
  PrecisionTrials(Search& search, const Precision& precision, std::shared_ptr<const Int8Calibration>& calibration,
                  const std::string& int8_warning)
      : search_(search), precision_(precision), calibration_(calibration), int8_warning_(int8_warning) {}

  // If int8 is refused because of its loss, fewer layers may still pay: each try leaves out the worst quarter.
  void run() {
    double least = kLeastSignalToNoise;
    for (int tries = 0; tries < kMostTries; ++tries) {
      std::string name = precision_.name;
      if (tries > 0) name += ", layers that keep " + format_decibels(least);
      const bool accepted = search_.try_step("computation", name, [&] { return propose(least); });
      if (accepted || !precision_.int8 || !search_.last_loss()) return;
      const std::optional<double> next = find_next_bound();
      if (!next) return;
      least = *next;
    }
  }

 private:
  static constexpr int kMostTries = 4;

  Proposal propose(double least_signal_to_noise) {
    Proposal proposal;
    proposal.lowering = search_.best().lowering;
    Program program = *search_.fused().program;
    if (precision_.int8) {
      if (calibration_ == nullptr) {
        QuantizeOptions options;
        options.dynamic_linears = precision_.dynamic;
        calibration_ = std::make_shared<const Int8Calibration>(search_.fused().program, search_.calibration_batches(),
                                                               options, search_.control());
      }
      Quantized quantized = calibration_->quantize(least_signal_to_noise);
      program = std::move(quantized.program);
      layers_ = std::move(quantized.layers);
      note_layers(proposal.notes);
    }
    if (precision_.bf16) program = convert_bf16(program);
    if (!precision_.int8 && precision_.bf16 && !computes_in_bf16(program))
      throw_error(ErrorKind::unsupported, "it has no product or convolution in f32 that bf16 would make faster");
    proposal.program = std::make_shared<const Program>(std::move(program));
    return proposal;
  }

  void note_layers(std::vector<std::string>& notes) const {
    if (std::ranges::none_of(layers_, &QuantizedLayer::quantized))
      throw_error(ErrorKind::unsupported, "no layer can be int8");
    if (!int8_warning_.empty()) notes.push_back(int8_warning_);
    notes.push_back(count_layers(layers_) + " in int8");
    for (const QuantizedLayer& layer : layers_) {
      const std::string name = name_layer(layer);
      if (!layer.quantized) notes.push_back(name + " stays in float: " + layer.reason);
      if (layer.smoothing.strength > 0) notes.push_back(name + " smoothed " + describe(layer.smoothing));
    }
  }

  // Empty if no layer would be left in int8.
  std::optional<double> find_next_bound() const {
    std::vector<double> kept;
    for (const QuantizedLayer& layer : layers_) {
      if (layer.quantized) kept.push_back(layer.signal_to_noise);
    }
    std::sort(kept.begin(), kept.end());
    const size_t worst = (kept.size() + 3) / 4;
    if (worst >= kept.size() || kept[worst] == kept.front()) return std::nullopt;
    return kept[worst];
  }

  Search& search_;
  const Precision& precision_;
  std::shared_ptr<const Int8Calibration>& calibration_;
  const std::string& int8_warning_;     // why int8 will not pay here; empty if it may
  std::vector<QuantizedLayer> layers_;  // layers of the last try
};

// Only after int8 layers: f32 attention then takes a larger share of the time.
void try_byte_attention(Search& search) {
  const auto& nodes = search.best().program->nodes;
  const bool has_int8 = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.op.name().starts_with("lissome::") && node.op.name().find("_int8") != std::string::npos;
  });
  Program program = *search.best().program;
  const int count = has_int8 ? quantize_attention(program) : 0;
  if (count == 0) return;
  search.try_step("computation", "int8 products in attention", [&] {
    Proposal proposal{std::make_shared<const Program>(program), search.best().lowering, {}};
    proposal.notes = {std::to_string(count) + " attention nodes multiply in int8"};
    return proposal;
  });
}

// A product of few rows takes as long as reading its weight does.
void try_packed_weights(Search& search) {
  constexpr double kLeastShare = 0.5;
  const std::optional<Dtype>& wanted = search.options().precision;
  if (wanted && *wanted != Dtype::i8) return;
  const double share = find_packable_share(*search.fused().program);
  for (const int bits : {8, 4}) {
    if (bits == 4 && wanted) continue;
    const std::string name = "int" + std::to_string(bits) + " weights";
    if (share < kLeastShare) {
      search.skip_step("computation", name,
                       "linears and embeddings hold only " + format_percent(share) + " of the weights");
      continue;
    }
    search.try_step("computation", name, [&] {
      Quantized quantized =
          quantize_weights(*search.fused().program, bits, search.calibration_batches(), {}, search.control());
      Proposal proposal{std::make_shared<const Program>(std::move(quantized.program)), search.best().lowering, {}};
      proposal.notes = {count_layers(quantized.layers) + " have " + name};
      return proposal;
    });
  }
}

}  // namespace

void run_basic_stage(Search& search) {
  const auto keep = Search::Keep::without_libtorch;
  const auto propose_prepared = [&] {
    Proposal proposal{search.fused().program, search.best().lowering, search.fused().notes};
    proposal.lowering.forced = search.options().forced;
    return proposal;
  };
  if (search.try_step("basic", "prepared: rewritten, planned memory, own kernels", propose_prepared, keep)) return;
  search.try_step("basic", "rewritten, every op by libtorch",
                  [&] { return Proposal{search.fused().program, search.best().lowering, search.fused().notes}; });
}

void run_computation_stage(Search& search) {
  if (!search.has_data()) {
    search.skip_step("computation", "bf16 and int8", "lossy steps must be judged on data: give --data");
    return;
  }
  static constexpr Precision kPrecisions[] = {
      {"bf16", false, false, true},
      {"int8", true, false, false},
      {"dynamic int8", true, true, false},
      {"int8 and bf16", true, false, true},
      {"dynamic int8 and bf16", true, true, true},
  };
  std::shared_ptr<const Int8Calibration> fixed, dynamic;
  const std::string int8_warning = explain_int8_without_vnni();
  for (const Precision& precision : kPrecisions) {
    if (!precision.fits(search.options().precision)) continue;
    if (precision.bf16 && !has(Feature::avx512_bf16)) {
      if (!precision.int8) search.skip_step("computation", precision.name, "this processor has no bf16 products");
      continue;
    }
    PrecisionTrials(search, precision, precision.dynamic ? dynamic : fixed, int8_warning).run();
  }
  try_packed_weights(search);
  try_byte_attention(search);
}

void run_compilation_stage(Search& search) {
  if (search.options().effort == Effort::fast) {
    search.skip_step("compilation", "kernels chosen by timing", "--effort fast does not time kernels");
    return;
  }
  search.try_step("compilation", "kernels chosen by timing", [&] {
    Proposal proposal{search.best().program, search.best().lowering, {}};
    proposal.lowering.forced = search.options().forced;
    proposal.lowering.effort = search.options().effort;
    return proposal;
  });
}

void run_deployment_stage(Search& search) {
  if (search.options().threads != 0) return;
  // The steps before ran on one thread for each core.
  std::set<int> counts = {1, (usable_cores() + 1) / 2, usable_threads()};
  counts.erase(usable_cores());
  for (const int count : counts) {
    search.try_step("deployment", count == 1 ? "one thread" : std::to_string(count) + " threads", [&] {
      Proposal proposal{search.best().program, search.best().lowering, {}};
      proposal.lowering.threads = count;
      return proposal;
    });
  }
}

}  // namespace lissome
