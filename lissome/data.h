// Face of data: the user's samples from files, fitted to what a model takes, split, and handed out batch by batch; and
// made-up inputs for models that come without data. Sees no torch. Flow:
//
//   load_dataset(path) -> fit_dataset(dataset, signature) -> split_dataset -> take_batch, take_labels
//
// Files: .npz and .safetensors (named arrays with one common first dimension), a single .npy, .csv (a header, then a
// sample a line), an IDX file (gzip or plain, with its label file beside it), a folder with the four standard IDX
// files: DIR:train or DIR:test, or a folder with a folder of PNG and JPEG images for each class. Everything is checked
// before it is used: errors name file, entry, what was seen and what is allowed (invalid_input, or usage for a path or
// a name).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/data/call_sizes.h"

namespace lissome {

// One input of a model, as data sees it.
struct DataSignature {
  std::string name;
  Dtype dtype = Dtype::f32;
  Sizes sizes;  // -1 stands for any size; the first is the batch
  // Integers: the least and the largest value that makes sense, such as 0 and rows - 1 for an index into an embedding.
  std::optional<std::pair<int64_t, int64_t>> range;
  bool allow_nonfinite = false;  // NaN and infinity are data here
};

// Whether a model that calls this op on an input asks where it holds NaN or infinity ("aten::isnan").
bool asks_for_nonfinite(std::string_view op);

// One named array of samples. The file's elements are kept as they are; dtype, sizes and scale say what batches give.
struct DataColumn {
  std::string name;
  Array array;  // [samples, ...]
  Dtype dtype = Dtype::f32;
  Sizes sample_sizes;  // without the first dimension
  double scale = 1;    // multiplied after the cast to a float type
};

struct Dataset {
  std::string source;               // the path as given, for messages
  std::vector<DataColumn> columns;  // inputs
  std::optional<Array> labels;      // class numbers i64 [samples] or [samples, ...], or float targets [samples, ...]
  std::vector<int64_t> rows;        // which samples of the arrays, in order; splits share the arrays
  bool is_images = false;           // from IDX or image files: fit_dataset may scale and reshape
  std::vector<std::string> image_files;  // of a folder of images, until fit_dataset knows their sizes and decodes them
  std::vector<std::string> classes;      // their names, where labels were words or folders
  std::vector<std::string> fields;       // names of a table's columns, which are the elements of the one input
  std::vector<std::string> notes;        // what was converted or left out, for the user

  int64_t samples() const { return static_cast<int64_t>(rows.size()); }
};

struct DataOptions {
  // The array that holds the labels (.npz, .safetensors), the column (.csv), or the path of a label file (IDX, which
  // else takes the one beside the images). Images have their folders for labels.
  std::string labels;
};

// Throws usage (no such path or label array), invalid_input (empty, not a data file, no common first dimension, labels
// of another length, NaN labels).
Dataset load_dataset(const std::string& path, const DataOptions& options = {});
// The same from arrays in memory, which are shared; `source` names them in errors.
Dataset make_dataset(std::vector<NamedArray> arrays, const DataOptions& options, const std::string& source);

// Data of the same kind as `first`, such as those that a trained model is measured on: class words get the numbers that
// they have there, columns of a table their order, and targets their type. To be called before fit_dataset(). Throws
// invalid_input for a class or a column that the other data do not have, words beside numbers, floats beside integers.
Dataset match_dataset(Dataset data, const Dataset& first);

// Puts the columns in the order of the model's inputs, by name, or by type and sizes where these leave one way (see
// docs/data.md; noted), and settles conversions: f64 -> f32 (noted), narrower integers -> wider, i64 -> i32 where every
// value fits, floats -> f16 or bf16 (noted). Images of bytes (IDX only) become floats in 0..1 and take the input's
// sizes when the number of elements is the same, so [28, 28] fits [1, 28, 28] and [784]. Image files are decoded to
// cover the sizes of the one input [batch, 1 or 3, height, width], their middle cut out. A fixed batch size in the
// signature is no constraint. Throws invalid_input: an input without array, wrong dtype or sizes, NaN or infinity in a
// float input, an integer outside of its range, a damaged image; over_budget: images that do not fit into half of the
// memory.
Dataset fit_dataset(Dataset dataset, std::span<const DataSignature> inputs);

// Without the samples that hold NaN or infinity and the images that cannot be read, which a note names. Image files are
// decoded for `inputs`. Throws invalid_input where none is left.
Dataset leave_out_bad(Dataset dataset, std::span<const DataSignature> inputs);

// The same as fit_dataset() for one set of inputs (`lissome run --input`): every size of the signature counts.
// Conversions are added to `notes`. `source` names the file in errors.
std::vector<NamedArray> fit_inputs(const std::vector<NamedArray>& arrays, std::span<const DataSignature> inputs,
                                   const std::string& source, std::vector<std::string>* notes);

struct DataSplit {
  Dataset calibration;
  Dataset validation;
};

struct SplitOptions {
  uint64_t seed = 0;
  double calibration = 0.5;            // share of the samples, 0 to 1 exclusive
  int64_t most_calibration = 1 << 20;  // samples; the rest goes to validation
};

// Two parts that share no sample: equal samples (by their bytes) land in one part. Stratified by class where labels are
// class numbers. Both parts hold at least one sample, shuffled; same seed, same parts. Throws invalid_input when there
// are fewer than two different samples.
DataSplit split_dataset(const Dataset& dataset, const SplitOptions& options = {});

// Samples first .. first + count - 1 as dense arrays [count, ...], converted as fit_dataset settled it.
std::vector<NamedArray> take_batch(const Dataset& dataset, int64_t first, int64_t count);
// Their labels, [count] or [count, ...]. The dataset must have labels.
Array take_labels(const Dataset& dataset, int64_t first, int64_t count);

// Inputs for a model without data: floats and complex numbers standard normal; integers uniform in their range, without
// one 0 or 1 (any byte for u8 and i8); bools by coin. `sizes` of each input, see CallSizes::choose. Same seed, same
// bytes.
std::vector<NamedArray> generate_inputs(std::span<const DataSignature> inputs, std::span<const Sizes> sizes,
                                        uint64_t seed = 0);

}  // namespace lissome
