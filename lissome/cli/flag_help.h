// The help of flags that several commands have. A flag of one name has one type, one default and one text in all
// commands. A flag that does another thing in a command has its text there; tests/cli/test_help.py lists those.
#pragma once

namespace lissome {

inline constexpr const char* kModelHelp = "The model: a .pt2 or a .lissome.";
inline constexpr const char* kJsonHelp = "Print the result as one JSON object.";
inline constexpr const char* kDeviceHelp = "Device to run on: cpu, cuda or cuda:N.";

// Data.
inline constexpr const char* kDataHelp =
    "The data: an .npz, .npy or .safetensors of arrays, a .csv, an IDX file (.gz), FOLDER:train of IDX files, or a "
    "folder with one folder of images for each class.";
inline constexpr const char* kLabelsHelp = "The labels: the name of an array, a column of a .csv, or an IDX file.";
inline constexpr const char* kInputHelp =
    "The inputs: an .npz, .npy or .safetensors whose arrays are matched by name or order. Default: generated inputs of "
    "the smallest sizes that the model takes.";
inline constexpr const char* kCallBatchHelp = "Samples of a call; 0: as few as the model takes.";
inline constexpr const char* kStepBatchHelp =
    "Samples that run at once in a step; auto (train only): as many as fit into memory.";
inline constexpr const char* kTransformsHelp =
    "Transforms of images, for example 'random_crop:28x28:padding=2,random_apply:0.5(flip),to_float'. With to_float, "
    "arrays of bytes count as images.";

// Computing.
inline constexpr const char* kOwnThreadsHelp = "Threads; 0: one for each core that this process may use.";
inline constexpr const char* kModelThreadsHelp =
    "Threads; 0: the number that a finished model was made for, else one for each core that this process may use.";
inline constexpr const char* kSeedHelp =
    "Seed for generated inputs, the split of data, the order of samples, first weights and dropout.";
inline constexpr const char* kWarmupHelp = "Untimed calls of each model before the timed ones.";
inline constexpr const char* kRunsHelp = "Timed calls of each model.";

// Training.
inline constexpr const char* kLossHelp =
    "Loss: cross_entropy, mse, l1, huber, bce, bce_logits, of the first output or of the one that is named behind a "
    "colon (mse:depth), or the name of an output that is the loss.";
inline constexpr const char* kOptimizerHelp = "Optimizer: adamw, adam, sgd, lion or adafactor.";
inline constexpr const char* kTrainPrecisionHelp =
    "Precision: f32, or mixed precision in bf16 or fp16, where weights stay f32. auto (train only) measures f32 and "
    "bf16 "
    "and takes the faster.";
inline constexpr const char* kRecomputeHelp =
    "Activations that are recomputed in the backward pass to fit --memory: none, auto, every:N, modules:PATTERN or "
    "adaptive:SHARE.";
inline constexpr const char* kDisableHelp = "Name of a pass to leave out. May be given several times.";
inline constexpr const char* kDiffHelp = "Print the changes of each pass.";
inline constexpr const char* kLossyHelp =
    "Keep some activations in bf16 for the backward pass to fit --memory, if gradients change by at most 2 %.";
inline constexpr const char* kOffloadHelp =
    "Folder on disk in which the optimizer states are kept instead of in memory. To fit --memory, activations and "
    "weights may be kept there too.";
inline constexpr const char* kUpdateHelp =
    "Update each weight as soon as its gradient is computed, so that only a few gradients are in memory at a time. "
    "lissome train then needs --clip 0.";
inline constexpr const char* kTrainMemoryHelp =
    "Most memory for weights, gradients, optimizer states, batches and activations, for example 2GiB.";

// Results.
inline constexpr const char* kModelOutputHelp = "File for the model, a .lissome.";
inline constexpr const char* kReportHelp = "File for a report of all measurements, an HTML page.";

}  // namespace lissome
