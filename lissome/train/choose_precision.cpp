// See choose_precision.h.
#include "lissome/train/choose_precision.h"

#include <ATen/core/ivalue.h>

#include "lissome/train/freeze.h"
#include "lissome/train/labels.h"
#include "lissome/train/make_batch_step.h"

namespace lissome {
namespace {

constexpr int kRounds = 7;
constexpr double kLeastGain = 0.9;  // of the time in f32
constexpr int64_t kSamples = 32;    // where the batch is still to be found

TrainOptions with_precision(TrainOptions options, Dtype precision) {
  options.precision = precision;
  return options;
}

}  // namespace

PrecisionChoice choose_precision(const Program& model, const Dataset& data, const Dataset* validation,
                                 const TrainOptions& options) {
  if (options.memory > 0)
    throw_error(ErrorKind::usage,
                "the precision is chosen by measuring steps of both side by side, which a bound on the memory does not "
                "leave room for; give f32 or bf16");
  const int64_t batch = choose_batch(model, data, options.batches, options.batch == 0 ? kSamples : options.batch);
  const int64_t examples = choose_examples(model, batch);
  const Program with_loss =
      freeze_parameters(attach_checked_loss(model, data, validation, options, examples), options.groups);
  const auto make_step = [&](Dtype precision) {
    return make_batch_step(model, with_loss, data, with_precision(options, precision), batch, examples);
  };
  BatchStep plain = make_step(Dtype::f32), mixed = make_step(Dtype::bf16);
  const std::vector<at::Tensor> samples = take_inputs(data, 0, batch, with_loss.inputs.size());
  const Interleaved times =
      compare_interleaved({{"f32", [&] { plain.rehearse(samples); }}, {"bf16", [&] { mixed.rehearse(samples); }}},
                          {.warmup = 1, .rounds = kRounds, .least_rounds = kRounds});
  const Ratio& ratio = times.ratios[1];
  const bool pays = ratio.interval.high <= kLeastGain;
  char text[200];
  std::snprintf(text, sizeof text, "%s is taken: a step in bf16 takes %.2f times as long as in f32 [%.2f, %.2f]",
                pays ? "bf16" : "f32", ratio.median, ratio.interval.low, ratio.interval.high);
  return {pays ? Dtype::bf16 : Dtype::f32, text};
}

}  // namespace lissome
