#include "lissome/cli/train_flags.h"

#include <algorithm>
#include <cmath>

#include "lissome/cli/flag_help.h"
#include "lissome/cli/flags.h"
#include "lissome/cli/train_words.h"

namespace lissome {
namespace {

OptimizerOptions make_optimizer(const TrainFlags& flags) {
  OptimizerOptions options = find_optimizer(flags.optimizer);
  const auto refuse = [&](const char* flag, const char* known) {
    throw_error(ErrorKind::usage, flag, " is for ", known, ", not for ", flags.optimizer);
  };
  std::visit(
      [&](auto& own) {
        if (flags.weight_decay >= 0) own.weight_decay = flags.weight_decay;
        if constexpr (requires { own.momentum; }) {
          if (flags.momentum >= 0) own.momentum = flags.momentum;
        } else if (flags.momentum >= 0) {
          refuse("--momentum", "sgd");
        }
        if constexpr (requires { own.states_8bit; }) {
          own.states_8bit = flags.states_8bit;
        } else if (flags.states_8bit) {
          refuse("--adam-8bit", "adamw and adam");
        }
      },
      options);
  return options;
}

double choose_rate(const TrainFlags& flags, const OptimizerOptions& optimizer) {
  if (flags.learning_rate >= 0) return flags.learning_rate;
  return std::visit([](const auto& own) { return own.lr; }, optimizer);
}

// Reads "head.*:lr=1e-3,decay=0". The rate is absolute, or with an x behind it a factor of --lr.
ParameterGroup parse_group(const std::string& text, double learning_rate) {
  const std::string where = "--group " + quote(text);
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    throw_error(ErrorKind::usage, where,
                ": the form is PATTERN:lr=RATE,decay=DECAY, for example 'head.*:lr=1e-3,decay=0'");
  ParameterGroup group;
  group.pattern = text.substr(0, colon);
  for (const std::string& field : split(text.substr(colon + 1), ',')) {
    const size_t sign = field.find('=');
    const std::string name = field.substr(0, sign);
    std::string value = sign == std::string::npos ? "" : field.substr(sign + 1);
    if (name == "decay") {
      group.weight_decay = parse_number(value, where);
    } else if (name == "lr" && value.ends_with('x')) {
      value.pop_back();
      group.lr_factor = parse_number(value, where);
    } else if (name == "lr") {
      if (learning_rate == 0) throw_error(ErrorKind::usage, where, ": with --lr 0 every rate is 0");
      group.lr_factor = parse_number(value, where) / learning_rate;
    } else {
      throw_error(ErrorKind::usage, where, ": ", quote(name), " is neither lr nor decay");
    }
  }
  return group;
}

std::vector<ParameterGroup> make_groups(const TrainFlags& flags, double learning_rate) {
  std::vector<ParameterGroup> groups;
  for (const std::string& pattern : flags.freeze) groups.push_back({.pattern = pattern, .frozen = true});
  for (const std::string& text : flags.groups) groups.push_back(parse_group(text, learning_rate));
  return groups;
}

std::optional<InitializeOptions> make_initializer(const TrainFlags& flags) {
  if (flags.initializer.empty()) return std::nullopt;
  const std::optional<Initializer> initializer = find_initializer(flags.initializer);
  if (!initializer)
    throw_error(ErrorKind::usage, "--init must be smart, uniform, normal, truncated_normal or orthogonal, not ",
                quote(flags.initializer));
  return InitializeOptions{.initializer = *initializer, .scale = {}, .seed = flags.seed};
}

// Reads steps ("100"), a time ("30s", "10min") or "never".
std::optional<SnapshotOptions> make_snapshots(const TrainFlags& flags) {
  if (flags.snapshot_every == "never") return std::nullopt;
  SnapshotOptions options{.folder = choose_snapshot_folder(flags), .every_seconds = 0, .keep = flags.keep};
  const std::string& every = flags.snapshot_every;
  const bool steps =
      !every.empty() && std::all_of(every.begin(), every.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (steps) {
    options.every_steps = static_cast<int64_t>(std::min(parse_number(every, "--snapshot-every"), 1e15));
  } else {
    options.every_seconds = parse_duration(every);
  }
  if (options.every_steps == 0 && !(options.every_seconds > 0))
    throw_error(ErrorKind::usage, "--snapshot-every must be steps (100), a time (30s, 10min) or never, not ",
                quote(every));
  return options;
}

// Reads a kind, and what stands behind its colon.
GradientCompression parse_compression(const std::string& word, int64_t dense_steps) {
  const size_t colon = std::min(word.find(':'), word.size());
  const std::string kind = word.substr(0, colon), of = word.substr(std::min(colon + 1, word.size()));
  if (word == "none") return DenseGradients{};
  if (word == "bf16" || word == "fp16") return DenseGradients{*parse_precision(word)};
  if (kind == "topk" && !of.empty()) return TopKGradients{parse_fraction(of), dense_steps};
  if (kind == "powersgd" && !of.empty()) {
    const double rank = parse_number(of, "--compress powersgd");
    if (rank != std::floor(rank))
      throw_error(ErrorKind::usage, "the rank of powersgd must be a whole number, not ", of);
    return PowerSgdGradients{static_cast<int64_t>(std::clamp(rank, -1e9, 1e9)), dense_steps};
  }
  throw_error(ErrorKind::usage,
              "--compress must be none, bf16, fp16, topk:SHARE (for example topk:1%) or powersgd:RANK (for example "
              "powersgd:4), not ",
              quote(word));
}

std::optional<int64_t> parse_bucket(const std::string& word) {
  if (word == "auto") return std::nullopt;
  return word == "none" ? 0 : parse_bytes(word);
}

void add_training_flags(Flags& flags, TrainFlags& to) {
  add_loss_flags(flags, to.loss);
  flags.add("--optimizer", to.optimizer, kOptimizerHelp);
  flags.add("--lr", to.learning_rate, "Learning rate. Default: the optimizer's own.", 0);
  flags.add("--weight-decay", to.weight_decay, "Weight decay. Default: the optimizer's own.", 0);
  flags.add("--momentum", to.momentum, "Momentum of sgd.", 0);
  flags.add("--adam-8bit", to.states_8bit, "Keep the moments of adamw and adam in 8 bits a number.");
  flags.add_hidden("--byte-states", to.states_8bit);  // the old name
  flags.add("--offload", to.offload, kOffloadHelp);
  flags.add("--freeze", to.freeze,
            "Pattern of parameters that are not trained, for example 'encoder.*'. May be given several times.");
  flags.add(
      "--group", to.groups,
      "PATTERN:lr=RATE,decay=DECAY: rate and weight decay of parameters whose name matches; lr=0.1x is a factor of "
      "--lr. May be given several times; the first pattern that matches counts.");
  flags.add("--schedule", to.schedule,
            "Schedule of the learning rate, for example constant, cosine:warmup=100, onecycle or step:size=30e.");
  flags.add("--epochs", to.epochs, "Passes over the data.", 1);
  flags.add("--max-steps", to.max_steps, "Optimizer steps after which training ends; 0: no limit.", 0);
  flags.add("--batch", to.batch, kStepBatchHelp, "N");
  flags.add("--accumulate", to.accumulate, "Batches whose gradients are summed for an update.", 1);
  flags.add("--no-scale-lr", to.keep_learning_rate, "Do not multiply the learning rate by --accumulate.");
  flags.add("--precision", to.precision, kTrainPrecisionHelp);
  flags.add("--memory", to.memory, kTrainMemoryHelp);
  flags.add("--memory-fraction", to.memory_fraction,
            "The same as a share of the memory that this process may use, for example 50%.");
  flags.add("--recompute", to.recompute, kRecomputeHelp);
  flags.add("--lossy-activations", to.lossy_activations, kLossyHelp);
  flags.add("--update-in-backward", to.update_in_backward, kUpdateHelp);
  flags.add("--disable", to.disabled, kDisableHelp);
  flags.add("--diff", to.diff, kDiffHelp);
  flags.add("--clip", to.clip_norm, "Largest global norm of gradients, to which they are scaled down; 0: no limit.", 0);
  flags.add("--init", to.initializer,
            "Train from scratch with this initializer: smart, uniform, normal, truncated_normal or orthogonal.");
  flags.add("--average", to.average,
            "Decay of a moving average of weights, which is validated and written; 0: no average.", 0);
  flags.add("--early-stop", to.patience,
            "Epochs without a better loss after which training ends; 0: no early stopping.", 0);
  flags.add("--threads", to.threads, kOwnThreadsHelp, 0, kMostThreads);
  flags.add("--seed", to.seed, kSeedHelp);
}

void add_group_flags(Flags& flags, TrainFlags& to) {
  flags.add(
      "--parallel", to.parallel,
      "How processes share the work: data (each takes its part of every batch) or none (each trains alone); auto: "
      "data where a launcher such as lissome launch or torchrun started several.");
  flags.add("--compress", to.compress,
            "How gradients travel between processes: as they are (none), in bf16, in fp16, the largest elements alone "
            "(topk:1%), or as products of matrices with so many columns (powersgd:4).");
  flags.add("--compress-from", to.compress_from, "First steps in which topk and powersgd send every number.", 0);
  flags.add(
      "--bucket", to.bucket,
      "Bytes of gradients that are summed over processes at once while the backward pass goes on; auto: chosen by "
      "measured times; none: all are summed after it.");
  flags.add("--sync-batch-norm", to.synchronize_batch_norm,
            "Batch norms take the statistics of all processes' samples instead of each one's own.");
  flags.add(
      "--uneven", to.uneven,
      "What happens where a last batch has fewer samples than there are processes: one without samples runs some that "
      "do not count (pad), waits for the others (join), or batches that are not full are left out (drop).");
  flags.add("--find-unused", to.find_unused,
            "Parameters without a gradient are always known; accepted for PyTorch's sake.");
  flags.add("--static-graph", to.static_graph, "The order of gradients is always known; accepted for PyTorch's sake.");
  flags.add("--peer-timeout", to.peer_timeout, "Time after which a rank no longer waits for the others.");
}

void add_loading_flags(Flags& flags, TrainFlags& to) {
  flags.add("--workers", to.workers,
            "Threads that load batches ahead; auto: chosen by the time that steps wait for data.");
  flags.add("--prefetch", to.prefetch, "Batches that each worker loads ahead.", 1, 1024);
  flags.add("--transforms", to.transforms, kTransformsHelp);
  flags.add("--bad-samples", to.bad_samples,
            "Samples that cannot be read or hold NaN end training (fatal) or are left out (skip).");
  flags.add("--cache-samples", to.cache, "Memory for caching samples of a slow source, for example 1GiB.");
  flags.add("--pin-memory", to.pin_memory, "Load batches into page-locked memory. Has no effect without a device.");
}

BatchOptions make_batch_options(const TrainFlags& flags) {
  BatchOptions options;
  if (flags.workers != "auto") {
    const double workers = parse_number(flags.workers, "--workers");
    if (workers != std::floor(workers) || workers < 0 || workers > 1024)
      throw_error(ErrorKind::usage, "--workers must be auto or 0 to 1024, not ", quote(flags.workers));
    options.workers = static_cast<int>(workers);
  }
  options.prefetch = flags.prefetch;
  if (!flags.transforms.empty()) parse_transforms(flags.transforms);  // reports errors before data is read
  options.transforms = flags.transforms;
  if (flags.bad_samples != "fatal" && flags.bad_samples != "skip")
    throw_error(ErrorKind::usage, "--bad-samples must be fatal or skip, not ", quote(flags.bad_samples));
  options.bad_samples = flags.bad_samples == "skip" ? BadSamples::skip : BadSamples::fatal;
  if (!flags.cache.empty()) options.cache_bytes = parse_bytes(flags.cache);
  options.pin_memory = flags.pin_memory;
  return options;
}

void add_watching_flags(Flags& flags, TrainFlags& to) {
  flags.add("--snapshots", to.snapshots,
            "Folder for snapshots from which --resume continues. Default: OUTPUT.snapshots, which is removed when "
            "training ends.");
  flags.add("--snapshot-every", to.snapshot_every, "Steps (100) or time (30s) between snapshots, or never.");
  flags.add("--keep", to.keep, "Number of newest snapshots that are kept.", 1);
  flags.add("--resume", to.resume, "Folder of snapshots: continue from the newest undamaged one, to the same weights.");
  flags.add("--log", to.log, "File to which a line of JSON is added for every step, epoch and notice.");
  flags.add("--tensorboard", to.events, "Folder for event files of TensorBoard.");
  flags.add("--report", to.report, kReportHelp);
  flags.add("--beside", to.beside, "The --log of another training, which --report shows beside this one.");
  flags.add("--memory-every", to.memory_every, "Steps between lines of --log about the use of memory; 0: none.", 0);
  flags.add("--target-step", to.target_step,
            "Target step time, for example 100ms. Warns when steps exceed it by 20 % and tries the automatic settings "
            "again.");
}

}  // namespace

void read_train_flags(TrainFlags& to, const std::vector<std::string>& arguments) {
  Flags flags("train",
              "Trains a .pt2 that was exported in train mode, without Python. The trained model is in eval form, with "
              "PyTorch's "
              "names, ready for lissome optimize.");
  flags.require("MODEL", to.model, kModelHelp);
  flags.require("--data", to.data, kDataHelp);
  flags.add("--labels", to.labels, kLabelsHelp);
  flags.add("--validation,--val", to.validation,
            "Validation data, on which the model is measured in eval form after each epoch.");
  add_training_flags(flags, to);
  add_group_flags(flags, to);
  add_loading_flags(flags, to);
  add_watching_flags(flags, to);
  flags.require("-o,--output", to.output, kModelOutputHelp);
  flags.add("--weights-out", to.weights_output, "File for the weights, a .safetensors with PyTorch's names.");
  flags.add_json(to.json);
  flags.parse(arguments);
}

std::optional<GroupPlace> choose_group_place(const TrainFlags& flags) {
  if (flags.parallel != "auto" && flags.parallel != "data" && flags.parallel != "none")
    throw_error(ErrorKind::usage, "--parallel must be auto, data or none, not ", quote(flags.parallel));
  if (flags.parallel == "none") return std::nullopt;
  const std::optional<GroupPlace> place = find_group_place();
  if (!place && flags.parallel == "data")
    throw_error(ErrorKind::usage,
                "--parallel data needs a launcher, which starts several processes, for example\n"
                "  lissome launch --processes 2 -- train MODEL ...");
  return place && place->ranks == 1 && flags.parallel == "auto" ? std::nullopt : place;
}

std::string choose_snapshot_folder(const TrainFlags& flags) {
  if (!flags.snapshots.empty()) return flags.snapshots;
  return flags.resume.empty() ? flags.output + ".snapshots" : flags.resume;
}

namespace {

// Bytes; 0: no limit.
int64_t choose_memory(const TrainFlags& flags) {
  if (flags.memory_fraction.empty()) return flags.memory.empty() ? 0 : parse_bytes(flags.memory);
  if (!flags.memory.empty())
    throw_error(ErrorKind::usage, "--memory and --memory-fraction both limit the memory: give one of them");
  const double fraction = parse_fraction(flags.memory_fraction);
  if (!(fraction > 0))
    throw_error(ErrorKind::usage, "--memory-fraction must be above 0, not ", quote(flags.memory_fraction));
  return static_cast<int64_t>(fraction * static_cast<double>(total_memory_bytes()));
}

}  // namespace

TrainOptions make_train_options(const TrainFlags& flags, const Program& model) {
  TrainOptions options;
  options.loss = make_loss(flags.loss, model);
  options.optimizer = make_optimizer(flags);
  options.groups = make_groups(flags, choose_rate(flags, options.optimizer));
  if (flags.learning_rate >= 0) options.learning_rate = flags.learning_rate;
  options.schedule = flags.schedule;
  options.epochs = flags.epochs;
  if (flags.max_steps > 0) options.max_steps = flags.max_steps;
  options.batch = parse_batch(flags.batch);
  options.accumulate = flags.accumulate;
  options.scale_learning_rate = !flags.keep_learning_rate;
  options.precision = parse_precision(flags.precision);
  const Recompute recompute = parse_recompute(flags.recompute);
  options.memory = choose_memory(flags);
  if (options.memory > 0) {
    options.recompute = recompute;
  } else if (!std::holds_alternative<KeepAll>(recompute) && !std::holds_alternative<RecomputeToFit>(recompute)) {
    throw_error(ErrorKind::usage, "--recompute ", flags.recompute,
                " needs --memory or --memory-fraction, the limit to fit");
  }
  options.batches = make_batch_options(flags);
  options.clip_norm = flags.clip_norm;
  options.update_in_backward = flags.update_in_backward;
  options.lossy_activations = flags.lossy_activations;
  check_training_passes(flags.disabled);
  options.disabled_passes = flags.disabled;
  options.memory_every = flags.memory_every;
  options.offload = flags.offload;
  options.threads = flags.threads;
  options.seed = flags.seed;
  options.initialize = make_initializer(flags);
  if (flags.patience > 0) options.early_stop = {.patience = flags.patience};
  if (flags.average > 0) options.average_decay = flags.average;
  if (!flags.target_step.empty()) options.monitor.target_step_seconds = parse_duration(flags.target_step);
  options.snapshots = make_snapshots(flags);
  options.resume = flags.resume;
  options.bucket = parse_bucket(flags.bucket);
  options.compression = parse_compression(flags.compress, flags.compress_from);
  options.synchronize_batch_norm = flags.synchronize_batch_norm;
  const std::optional<UnevenBatch> uneven = parse_uneven(flags.uneven);
  if (!uneven) throw_error(ErrorKind::usage, "--uneven must be pad, drop or join, not ", quote(flags.uneven));
  options.batches.uneven = *uneven;
  return options;
}

}  // namespace lissome
