// See start_training.h.
#include "lissome/train/loop/start_training.h"

#include <ATen/Context.h>

#include "lissome/base.h"
#include "lissome/distributed.h"
#include "lissome/train/budget/training_facts.h"
#include "lissome/train/loop/learn/gradient_compressor.h"
#include "lissome/train/remat/offload_file.h"
#include "lissome/train/rewrite/batch_norm_least.h"
#include "lissome/train/step/fit_model.h"

namespace lissome {
namespace {

// Updates in the backward pass exclude what needs every gradient before the first update.
void check_update_in_backward(const TrainOptions& options) {
  const auto refuse = [](const char* why, const char* way) {
    throw_error(ErrorKind::usage, "updates in the backward pass change weights before all gradients are computed, ",
                why, ".\n      ", way);
  };
  if (options.clip_norm > 0)
    refuse("so gradients cannot be clipped to a global norm", "Turn clipping off: --clip 0, or clip_norm = 0");
  if (options.accumulate > 1)
    refuse("so gradients cannot be summed over several batches", "Give a larger batch in place of --accumulate");
  if (options.precision == Dtype::f16)
    refuse("so a step cannot be skipped when the scaled gradients of fp16 overflow", "Use bf16, which needs no scale");
  if (options.group != nullptr)
    refuse("so gradients cannot be summed over ranks", "Leave --update-in-backward out, or train in one process");
}

void check_compression(const TrainOptions& options) {
  const auto compressor =
      make_compressor(options.compression, {}, {options.optimizer, options.groups, options.clip_norm});
  if (compressor && options.precision == Dtype::f16)
    throw_error(ErrorKind::usage,
                "gradients cannot be compressed by topk or powersgd with --precision fp16: what is not sent would be "
                "kept at a scale of the loss that changes. Take bf16, which needs no scale");
}

// Ranks whose steps run in different numbers of parts would wait for each other for ever.
void check_synchronized(const TrainOptions& options) {
  if (!options.synchronize_batch_norm) return;
  const auto refuse = [](const char* why, const char* way) {
    throw_error(ErrorKind::usage, "batch norms cannot be synchronized ", why, ".\n      ", way);
  };
  if (options.accumulate > 1)
    refuse("over the parts of an update", "Leave --accumulate out, and give a larger --batch");
  if (options.batch == 0)
    refuse("with --batch auto, because ranks may find different numbers", "Give --batch a number");
  if (options.batches.uneven == UnevenBatch::join)
    refuse("with a rank that has no samples and only joins the others' sums", "Take --uneven pad or drop");
}

// One of several processes takes its part of each batch, and rank 0 alone saves.
void take_part(TrainOptions& options) {
  options.batches.parts = options.group->ranks(), options.batches.part = options.group->rank();
  if (options.group->rank() != 0) options.snapshots.reset();
}

// What Group::check_agreement() throws; nothing where ranks agree.
std::optional<Error> find_difference(Group& group, const TrainingFacts& facts) {
  try {
    group.check_agreement(facts);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// The difference between ranks that do not train the same from the same place.
std::optional<Error> compare_ranks(Group& group, TrainingFacts facts, const Program& model, const Dataset* validation,
                                   const TrainOptions& options, const FoundSnapshot& found) {
  facts.emplace_back("weights of the model", hash_weights(model));
  facts.emplace_back("compression", describe_compression(options.compression));
  facts.emplace_back("memory limit", options.memory > 0 ? "given" : "none");  // decides when gradients are summed
  facts.emplace_back("initializer", options.initialize ? initializer_name(options.initialize->initializer) : "none");
  facts.emplace_back("validation data", validation == nullptr ? "none" : "given");
  facts.emplace_back("bad samples", options.batches.bad_samples == BadSamples::skip ? "skip" : "fatal");
  facts.emplace_back("disabled passes", options.disabled_passes.empty() ? "none" : join(options.disabled_passes, ", "));
  facts.emplace_back("bucket", options.bucket ? std::to_string(*options.bucket) : "by measured times");
  facts.emplace_back("batch norms", options.synchronize_batch_norm ? "synchronized" : "of each rank");
  facts.emplace_back("uneven batches", name_uneven(options.batches.uneven));
  facts.emplace_back("epochs", std::to_string(options.epochs));
  facts.emplace_back("max steps", options.max_steps ? std::to_string(*options.max_steps) : "none");
  facts.emplace_back("snapshot",
                     found.path.empty() ? "none" : std::to_string(found.snapshot.require_count("record/steps")));
  if (!found.path.empty()) facts.emplace_back("contents of the snapshot", hash_snapshot(found.snapshot));
  return find_difference(group, facts);
}

// Chooses f32 or bf16: the precision of the snapshot to continue from, else the faster one by measurement.
PrecisionChoice complete_precision(const FoundSnapshot& found, const Program& model, const Dataset& data,
                                   const Dataset* validation, const TrainOptions& options) {
  for (const auto& [name, text] : found.snapshot.facts) {
    if (name == "precision")
      return {text == dtype_name(Dtype::bf16) ? Dtype::bf16 : Dtype::f32,
              "the precision is " + text + ", as in the snapshot"};
  }
  return choose_precision(model, data, validation, options);
}

// The precision that rank 0 measured to be faster.
void share_precision(Group& group, PrecisionChoice& choice) {
  const std::string name = group.share_text(std::string(dtype_name(choice.precision)), "the precision of rank 0");
  choice.precision = name == dtype_name(Dtype::bf16) ? Dtype::bf16 : Dtype::f32;
  choice.reason = group.share_text(choice.reason, "why rank 0 chose it");
}

// Makes everything that records gradients. Throws for models whose gradients cannot be recorded. Null, with `differ`
// set, where ranks differ, for which no other fit of the model helps.
std::unique_ptr<StartedTraining> start_fitted(const Program& model, Program fitted, const Program& validated,
                                              const Dataset& data, const Dataset* validation, const TrainOptions& asked,
                                              const FoundSnapshot& found, const WorkControl& control,
                                              std::optional<Error>& differ) {
  auto started = std::make_unique<StartedTraining>(StartedTraining{std::move(fitted), asked, {}, {}, nullptr});
  TrainOptions& options = started->options;
  if (options.group != nullptr) take_part(options);
  if (options.group != nullptr) {
    const std::string asked_for = options.precision ? std::string(dtype_name(*options.precision)) : "auto";
    differ = find_difference(*options.group, {{"precision", asked_for}});
    if (differ) return nullptr;
  }
  if (!options.precision) {
    started->precision = complete_precision(found, started->fitted, data, validation, options);
    if (options.group != nullptr) share_precision(*options.group, *started->precision);
    options.precision = started->precision->precision;
  }
  const TrainingFacts facts = list_facts(model, data, validation, options);
  if (options.lossy_activations) {
    started->lossy = check_lossy(started->fitted, data, validation, options);
    options.lossy_activations = started->lossy->allowed;
  }
  if (options.group != nullptr) differ = compare_ranks(*options.group, facts, model, validation, options, found);
  if (differ) return nullptr;
  refuse_other_training(found, facts);
  if (options.snapshots && options.resume != options.snapshots->folder) refuse_used_folder(options.snapshots->folder);
  at::manual_seed(options.seed);
  if (options.initialize) initialize_weights(model, *options.initialize);
  const int64_t live_before = start_metering();
  started->loop =
      std::make_unique<TrainLoop>(make_training_model(started->fitted, validated, data, validation, options), data,
                                  validation, options, facts, control, live_before);
  return started;
}

}  // namespace

void check_train_options(const Program& model, const TrainOptions& options) {
  if (options.update_in_backward) check_update_in_backward(options);
  check_offload_folder(options.offload);
  check_compression(options);
  check_synchronized(options);
  if (options.initialize && !model.training)
    throw_error(ErrorKind::invalid_input,
                "training from scratch (--init) needs a model in train form; export it with "
                "torch.export.export(model.train(), ...)");
}

std::unique_ptr<StartedTraining> start_training(const Program& model, const Dataset& data, const Dataset* validation,
                                                const TrainOptions& options, const FoundSnapshot& found,
                                                const WorkControl& control) {
  const Program validated = *fit_model(model, data, validation, BatchFit::any, 0);
  const int64_t least = find_least_for_batch_norm(validated);
  const int64_t batch = choose_batch(raise_least_batch(validated, least), data, options.batches, options.batch);
  std::unique_ptr<StartedTraining> started;
  std::optional<Error> differ;
  fit_widest(model, data, validation, batch, [&](Program fitted, const std::string& notice) {
    fitted = raise_least_batch(std::move(fitted), least);
    started = start_fitted(model, std::move(fitted), validated, data, validation, options, found, control, differ);
    if (started && !notice.empty()) started->loop->notices().add(notice);
  });
  if (differ) throw *differ;
  return started;
}

}  // namespace lissome
