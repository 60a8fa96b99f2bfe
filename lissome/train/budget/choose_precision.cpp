// See choose_precision.h.
#include "lissome/train/budget/choose_precision.h"

#include <ATen/core/ivalue.h>

#include "lissome/train/budget/compare_step_times.h"
#include "lissome/train/rewrite/freeze.h"
#include "lissome/train/step/labels.h"
#include "lissome/train/step/make_batch_step.h"

namespace lissome {
namespace {

constexpr int64_t kSamples = 32;  // if the batch size is not known yet

TrainOptions with_precision(TrainOptions options, Dtype precision) {
  options.precision = precision;
  return options;
}

}  // namespace

PrecisionChoice choose_precision(const Program& model, const Dataset& data, const Dataset* validation,
                                 const TrainOptions& options) {
  if (options.memory > 0)
    throw_error(
        ErrorKind::usage,
        "precision auto measures steps of f32 and bf16 side by side, and a memory limit leaves no room for both; "
        "give f32 or bf16");
  const int64_t batch = choose_batch(model, data, options.batches, options.batch == 0 ? kSamples : options.batch);
  const int64_t examples = choose_examples(model, batch);
  const Program with_loss =
      freeze_parameters(attach_checked_loss(model, data, validation, options, examples), options.groups);
  const auto make_step = [&](Dtype precision) {
    return make_batch_step(model, with_loss, data, with_precision(options, precision), batch, examples);
  };
  BatchStep plain = make_step(Dtype::f32), mixed = make_step(Dtype::bf16);
  const std::vector<at::Tensor> samples = take_inputs(data, 0, batch, with_loss.inputs.size());
  const StepComparison compared =
      compare_step_times([&] { plain.rehearse(samples); }, [&] { mixed.rehearse(samples); });
  return {compared.pays ? Dtype::bf16 : Dtype::f32, std::string("the precision is ") +
                                                        (compared.pays ? "bf16" : "f32") + ": a step in bf16 takes " +
                                                        compared.factor + " as in f32"};
}

}  // namespace lissome
