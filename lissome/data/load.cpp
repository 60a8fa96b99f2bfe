// load_dataset: finds out what the path is, loads it, and checks what holds for every dataset: one common first
// dimension, at least one sample, labels that belong to it.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lissome/data.h"
#include "lissome/data/csv.h"
#include "lissome/data/idx.h"
#include "lissome/data/image_folder.h"

namespace lissome {
namespace {

bool is_file(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// The first of the usual spellings that exists: ...-images-idx3-ubyte.gz, ...-images.idx3-ubyte, ...
std::optional<std::string> find_idx_file(const std::string& folder, const std::string& part, const std::string& kind,
                                         int axes) {
  for (const char* separator : {"-", "."})
    for (const char* end : {".gz", ""}) {
      const std::string path =
          folder + "/" + part + "-" + kind + separator + "idx" + std::to_string(axes) + "-ubyte" + end;
      if (is_file(path)) return path;
    }
  return std::nullopt;
}

struct IdxPair {
  std::string images;
  std::string labels;  // empty when there is none
};

// The label file that belongs to a file of images, by the names that MNIST gave.
std::string find_label_file(const std::string& images) {
  std::string path = images;
  const size_t word = path.rfind("images"), axes = path.rfind("idx3");
  if (word == std::string::npos || axes == std::string::npos || axes < word) return "";
  path.replace(axes, 4, "idx1").replace(word, 6, "labels");
  if (is_file(path)) return path;
  if (path.size() > 3 && path.substr(path.size() - 3) == ".gz")
    path.resize(path.size() - 3);
  else
    path += ".gz";
  return is_file(path) ? path : "";
}

IdxPair find_pair(const std::string& folder, const std::string& split) {
  struct Part {
    std::string name, stem;
  };
  const Part parts[] = {{"train", "train"}, {"test", "t10k"}, {"test", "test"}};
  std::vector<std::string> found;
  for (const Part& part : parts) {
    const auto images = find_idx_file(folder, part.stem, "images", 3);
    if (!images) continue;
    if (split == part.name) return {*images, find_idx_file(folder, part.stem, "labels", 1).value_or("")};
    found.push_back(folder + ":" + part.name);
  }
  if (found.empty())
    throw_error(ErrorKind::invalid_input, quote(folder),
                ": the folder holds neither IDX files nor folders of images. Allowed are folders with "
                "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and "
                "t10k-labels-idx1-ubyte.gz, folders with a folder of .png or .jpg for each class, and files: .npz, "
                ".npy, .safetensors, .csv, IDX.");
  throw_error(ErrorKind::usage, quote(folder), ": this is a folder of IDX files; say which part: ", join(found, " or "),
              ".");
}

DataColumn make_column(std::string name, Array array) {
  DataColumn column{std::move(name), std::move(array), Dtype::f32, {}, 1};
  column.dtype = column.array.dtype;
  column.sample_sizes.assign(column.array.sizes.begin() + 1, column.array.sizes.end());
  return column;
}

Dataset load_idx_pair(const std::string& source, const IdxPair& pair, const DataOptions& options) {
  std::string labels = pair.labels;
  if (!options.labels.empty() && options.labels != "labels") {
    if (!is_file(options.labels))
      throw_error(ErrorKind::usage, quote(options.labels),
                  ": there is no such label file. For IDX, labels are a file; without "
                  "the option, the file beside the images is read.");
    labels = options.labels;
  }
  if (!options.labels.empty() && labels.empty())
    throw_error(ErrorKind::usage, quote(pair.images), ": there is no label file beside it; give its path as labels.");
  Dataset dataset;
  dataset.source = source;
  dataset.is_images = true;
  dataset.columns.push_back(make_column("images", load_idx(pair.images)));
  if (!labels.empty()) dataset.labels = load_idx(labels);
  return dataset;
}

[[noreturn]] void fail_labels(const std::string& path, const std::string& labels,
                              const std::vector<NamedArray>& arrays) {
  std::vector<std::string> names;
  for (const NamedArray& named : arrays) names.push_back(named.name);
  const std::string nearest = find_nearest(labels, names);
  throw_error(ErrorKind::usage, quote(path), ": there is no array ", quote(labels),
              " for the labels; the arrays are: ", names.empty() ? "none" : join(names, ", "),
              nearest.empty() ? "." : ". Did you mean " + nearest + "?");
}

Dataset gather(std::vector<NamedArray> arrays, const DataOptions& options, const std::string& source) {
  Dataset dataset;
  dataset.source = source;
  if (!options.labels.empty()) {
    const auto found =
        std::find_if(arrays.begin(), arrays.end(), [&](const auto& a) { return a.name == options.labels; });
    if (found == arrays.end()) fail_labels(source, options.labels, arrays);
    dataset.labels = found->array;
    if (arrays.size() > 1) {
      arrays.erase(found);
    } else {
      dataset.notes.push_back(quote(options.labels) + ", the only array, is both the input and the labels");
    }
  }
  for (NamedArray& named : arrays) {
    if (named.array.sizes.empty())
      throw_error(ErrorKind::invalid_input, quote(source), ": entry ", quote(named.name),
                  " is a single number; arrays of samples [samples, ...] are needed.");
    dataset.columns.push_back(make_column(std::move(named.name), std::move(named.array)));
  }
  return dataset;
}

Dataset load_csv_dataset(const std::string& path, const DataOptions& options) {
  CsvTable table = load_csv(path, options.labels);
  Dataset dataset;
  dataset.source = path;
  if (table.columns.empty())
    throw_error(ErrorKind::invalid_input, quote(path),
                ": there are no columns besides the labels; at least one is needed.");
  dataset.columns.push_back(make_column("features", std::move(table.features)));
  dataset.labels = std::move(table.labels);
  dataset.classes = std::move(table.classes);
  dataset.fields = std::move(table.columns);
  return dataset;
}

// Decoding waits for fit_dataset, which knows what sizes the model takes.
Dataset load_image_dataset(const std::string& path, const DataOptions& options) {
  if (!options.labels.empty() && options.labels != "labels")
    throw_error(ErrorKind::usage, quote(options.labels), ": images have their folders for labels; leave it out.");
  ImageFolder folder = list_image_folder(path);
  Dataset dataset;
  dataset.source = path;
  dataset.is_images = true;
  dataset.labels = make_array(Dtype::i64, {static_cast<int64_t>(folder.labels.size())});
  std::copy(folder.labels.begin(), folder.labels.end(), dataset.labels->data<int64_t>());
  dataset.image_files = std::move(folder.files);
  dataset.classes = std::move(folder.classes);
  if (const size_t count = folder.others.size(); count > 0)
    dataset.notes.push_back(quote(path) + ": " + std::to_string(count) + (count == 1 ? " file is" : " files are") +
                            " left out; .png, .jpg and .jpeg in the folders of the classes are read: " +
                            join_few(std::move(folder.others), 3));
  return dataset;
}

// Class numbers become i64[samples], or [samples, ...] where a sample has many (tokens, pixels); floats stay targets.
void settle_labels(Dataset* dataset, int64_t samples) {
  Array& labels = *dataset->labels;
  const auto refuse = [&](const auto&... parts) {
    throw_error(ErrorKind::invalid_input, quote(dataset->source), ": the labels, ", dtype_name(labels.dtype),
                format_sizes(labels.sizes), ", ", parts...);
  };
  if (labels.sizes.empty() || labels.sizes[0] != samples)
    refuse("must have one entry for each of the ", samples, " samples.");
  if (is_integral(labels.dtype) || labels.dtype == Dtype::boolean) {
    labels = cast_array(labels.view(), Dtype::i64);
    if (labels.elements() == samples) labels.sizes = {samples};
  } else if (is_floating(labels.dtype)) {
    const Array values = cast_array(labels.view(), Dtype::f64);
    const double* data = values.data<double>();
    const double* wrong = std::find_if(data, data + values.elements(), [](double v) { return !std::isfinite(v); });
    if (wrong != data + values.elements())
      refuse("hold ", *wrong, " at element ", wrong - data, "; finite numbers are allowed.");
  } else {
    refuse("must be integers (class numbers) or floats (targets).");
  }
}

void number_rows(Dataset* dataset, int64_t samples) {
  dataset->rows.resize(static_cast<size_t>(samples));
  std::iota(dataset->rows.begin(), dataset->rows.end(), int64_t{0});
}

void settle(Dataset* dataset) {
  if (!dataset->image_files.empty()) return number_rows(dataset, static_cast<int64_t>(dataset->image_files.size()));
  if (dataset->columns.empty())
    throw_error(ErrorKind::invalid_input, quote(dataset->source),
                ": there are no arrays; at least one array [samples, ...] is needed.");
  const DataColumn& first = dataset->columns[0];
  const int64_t samples = first.array.sizes[0];
  for (const DataColumn& column : dataset->columns)
    if (column.array.sizes[0] != samples)
      throw_error(ErrorKind::invalid_input, quote(dataset->source), ": entry ", quote(first.name), " has ", samples,
                  " samples, entry ", quote(column.name), " has ", column.array.sizes[0],
                  "; all arrays need the same first dimension.");
  // Not even a count of samples may cost memory that the file does not hold.
  for (const DataColumn& column : dataset->columns)
    if (samples > 0 && column.array.elements() == 0)
      throw_error(ErrorKind::invalid_input, quote(dataset->source), ": entry ", quote(column.name), ", ",
                  format_sizes(column.array.sizes), ", has samples without elements.");
  if (samples == 0)
    throw_error(ErrorKind::invalid_input, quote(dataset->source), ": entry ", quote(first.name), ", ",
                format_sizes(first.array.sizes), ", has no samples; at least one is needed.");
  if (dataset->labels) settle_labels(dataset, samples);
  number_rows(dataset, samples);
}

bool has_ending(const std::string& path, std::string_view ending) {
  return path.size() > ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
}

Dataset load_any(const std::string& path, const DataOptions& options) {
  const size_t colon = path.rfind(':');
  if (!is_file(path) && !is_folder(path) && colon != std::string::npos && is_folder(path.substr(0, colon))) {
    const std::string split = path.substr(colon + 1);
    if (split != "train" && split != "test")
      throw_error(ErrorKind::usage, quote(path), ": ", quote(split),
                  " is not a part of a dataset; the parts are train and test.");
    return load_idx_pair(path, find_pair(path.substr(0, colon), split), options);
  }
  if (is_folder(path) && is_image_folder(path)) return load_image_dataset(path, options);
  if (is_folder(path)) return load_idx_pair(path, find_pair(path, ""), options);
  if (has_ending(path, ".csv")) return load_csv_dataset(path, options);
  if (has_ending(path, ".safetensors")) return gather(load_safetensors(path), options, path);
  const auto file = MappedFile::open(path);
  if (looks_like_idx(file->bytes())) return load_idx_pair(path, {path, find_label_file(path)}, options);
  return gather(load_arrays(path), options, path);
}

}  // namespace

Dataset load_dataset(const std::string& path, const DataOptions& options) {
  Dataset dataset = load_any(path, options);
  settle(&dataset);
  return dataset;
}

Dataset make_dataset(std::vector<NamedArray> arrays, const DataOptions& options, const std::string& source) {
  Dataset dataset = gather(std::move(arrays), options, source);
  settle(&dataset);
  return dataset;
}

}  // namespace lissome
