// See setup_notices.h.
#include "lissome/train/loop/watch/setup_notices.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lissome/train/rewrite/freeze.h"
#include "lissome/train/rewrite/mode_dependence.h"
#include "lissome/train/rewrite/synchronize_batch_norm.h"
#include "lissome/train/step/labels.h"
#include "lissome/train/step/make_batch_step.h"

namespace lissome {
namespace {

void add_batch_notices(std::vector<std::string>& notices, const TrainingModel& model, int64_t all, int64_t samples,
                       int64_t asked) {
  if (model.fixed && asked != 0 && model.batch != asked)
    notices.push_back("the model has a fixed batch size of " + std::to_string(model.batch) +
                      ", so batches have this size; samples that do not fill a batch are left out of their epoch");
  if (!model.fixed && asked > all)
    notices.push_back("batches have " + std::to_string(model.batch) + " of the " + std::to_string(asked) +
                      " samples that were asked for: the data has " + std::to_string(all));
  const int64_t rest = all % samples;
  if (!model.fixed && rest > 0 && rest < model.least)
    notices.push_back("the model takes batches of " + std::to_string(model.least) + " samples or more, so the last " +
                      std::to_string(rest) + " of each epoch are left out");
}

void add_step_notices(std::vector<std::string>& notices, const CurrentStep& step) {
  BatchStep& batch_step = step.batch_step();
  if (const std::optional<StepForecast>& forecast = batch_step.step().forecast())
    notices.push_back(describe_forecast(*forecast, batch_step.at_once()));
  if (batch_step.step().streams_weights()) notices.push_back(describe_offloaded(step.count_bytes()));
  const std::vector<PassResult>& passes = batch_step.step().passes();
  if (std::ranges::any_of(passes,
                          [](const PassResult& pass) { return pass.name == kSynchronizePass && pass.rewrites == 0; }))
    notices.emplace_back("--sync-batch-norm changes nothing: the model has no batch norm that normalizes by its batch");
}

// State that the written model goes on updating in each call. Batch norm's is gone in eval form; what a module's own
// code updates in train mode stays in its export.
std::string describe_kept_updates(const Program& judged) {
  if (judged.writes.empty()) return {};
  return "the written model will update its state in each call, as its export in train mode does (" +
         join_few(list_written_names(judged), 3) +
         "), where module.eval() may not. For that form, load the trained weights (--weights-out) into the module and "
         "export it in eval mode";
}

bool has_convolution(const Program& model) {
  return std::ranges::any_of(model.nodes, [](const Node& node) { return node.op.name().starts_with("aten::conv"); });
}

void add_model_notices(std::vector<std::string>& notices, const Program& model) {
  if (const std::string still = describe_still(model); !still.empty()) notices.push_back(still);
  if (!model.training && depends_on_mode(model))
    notices.emplace_back(
        "the model is as eval mode leaves it: its batch norm does not change and its dropout is absent. Export it in "
        "train mode to train with them: torch.export.export(model.train(), ...)");
}

}  // namespace

std::vector<std::string> list_setup_notices(const TrainingModel& model, const CurrentStep& step, const Dataset& data,
                                            int64_t samples, const TrainOptions& options) {
  std::vector<std::string> notices;
  add_batch_notices(notices, model, count_samples(data, options.batches), samples, options.batch);
  add_step_notices(notices, step);
  if (options.batches.pin_memory && !can_pin_memory())
    notices.emplace_back(
        "--pin-memory has no effect: page-locked memory is for copies to a device, and libtorch finds no device");
  add_model_notices(notices, model.model);
  if (options.precision == Dtype::f16 && has_convolution(model.model))
    notices.emplace_back(
        "libtorch computes gradients of convolution weights in fp16 by a reference kernel, up to a hundred times "
        "slower than in bf16; take --precision bf16");
  if (data.labels && !options.loss_function) {
    const Sizes of_sample(data.labels->sizes.begin() + 1, data.labels->sizes.end());
    for (std::string& text : describe_comparison(model.model, options.loss, of_sample))
      notices.push_back(std::move(text));
    if (std::string sums = describe_label_sums(data, options.loss); !sums.empty()) notices.push_back(std::move(sums));
  }
  if (const std::string kept = describe_kept_updates(model.judged); !kept.empty()) notices.push_back(kept);
  return notices;
}

std::string describe_average(const TrainOptions& options, int64_t steps) {
  constexpr double kMuch = 0.1;
  const double first = options.average_decay ? std::pow(*options.average_decay, static_cast<double>(steps)) : 0;
  if (!(first > kMuch)) return {};
  char text[160];
  std::snprintf(
      text, sizeof text,
      "after the planned %lld steps the moving average will still consist of the first weights by %.0f %%; take "
      "a smaller --average, or train longer",
      static_cast<long long>(steps), 100 * first);
  return text;
}

}  // namespace lissome
