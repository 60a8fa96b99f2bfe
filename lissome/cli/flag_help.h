// The help of flags that several commands have, in one place: a flag of one name is of one type, has one default and
// one text in all of them. Where the text depends on the command, because the flag does another thing there, it stands
// with the command; tests/cli/test_help.py lists those.
#pragma once

namespace lissome {

inline constexpr const char* kModelHelp = ".pt2 or .lissome";
inline constexpr const char* kJsonHelp = "print the result as JSON: one object";
inline constexpr const char* kDeviceHelp = "cpu, cuda or cuda:N";

// Of data.
inline constexpr const char* kDataHelp =
    ".npz, .npy or .safetensors of arrays; .csv; an IDX file (.gz), or FOLDER:train of IDX files; a folder "
    "with a folder of images for each class";
inline constexpr const char* kLabelsHelp = "the array, the column of a .csv or the IDX file with the labels";
inline constexpr const char* kInputHelp =
    ".npz, .npy or .safetensors: arrays by name, or in order; default: generated, as small as the model takes";
inline constexpr const char* kCallBatchHelp = "samples of a call; 0: as few as the model takes";
inline constexpr const char* kStepBatchHelp = "samples that run at once in a step; auto (train): as many as fit";
inline constexpr const char* kTransformsHelp =
    "of images: 'random_crop:28x28:padding=2,random_apply:0.5(flip),to_float'; with to_float, bytes are images";

// Of computing.
inline constexpr const char* kOwnThreadsHelp = "0: one for each core that this process may use";
inline constexpr const char* kModelThreadsHelp =
    "0: those that a finished model was made for, else one for each core that this process may use";
inline constexpr const char* kSeedHelp =
    "of what is drawn: generated inputs, the split of data, the order of samples, first weights, dropout";
inline constexpr const char* kWarmupHelp = "untimed calls of each model";
inline constexpr const char* kRunsHelp = "timed calls of each model";

// Of training.
inline constexpr const char* kLossHelp = "cross_entropy, mse, l1, huber, bce, bce_logits, or an output of the model";
inline constexpr const char* kOptimizerHelp = "adamw, adam, sgd, lion or adafactor";
inline constexpr const char* kTrainPrecisionHelp =
    "f32; bf16 or fp16: products and convolutions in it, weights stay f32; auto (train): f32 or bf16, whichever steps "
    "are faster in";
inline constexpr const char* kRecomputeHelp =
    "activations that are made again to fit --memory: none, auto, every:N, modules:PATTERN or adaptive:SHARE";
inline constexpr const char* kDisableHelp = "passes to leave out, by name";
inline constexpr const char* kDiffHelp = "print what each pass changed";
inline constexpr const char* kLossyHelp =
    "some activations may wait in bf16 for the backward pass to fit --memory, if gradients stay as they are within 2 %";
inline constexpr const char* kOffloadHelp =
    "a folder on disk where the optimizer's states lie in place of memory; to fit --memory, activations and weights "
    "may wait there, too";
inline constexpr const char* kUpdateHelp =
    "each weight as soon as its gradient is made, so that gradients take no memory of their own; train needs --clip 0";
inline constexpr const char* kTrainMemoryHelp =
    "most bytes of weights, gradients, optimizer states, batches and activations, such as 2GiB";

// Of what is written.
inline constexpr const char* kModelOutputHelp = "where the model goes, a .lissome";
inline constexpr const char* kReportHelp = "an HTML page of all that was measured";

}  // namespace lissome
