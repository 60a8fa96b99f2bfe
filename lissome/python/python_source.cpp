// See python_source.h.
#include "lissome/python/python_source.h"

#include <ATen/core/Tensor.h>

namespace lissome {
namespace {

class PythonSource : public BatchSource {
 public:
  PythonSource(const py::object& python, std::vector<DataSignature> inputs, std::string transforms)
      : inputs_(std::move(inputs)), transforms_(std::move(transforms)) {
    const py::gil_scoped_acquire acquired;
    python_ = python;
    samples_ = python.attr("samples").cast<int64_t>();
    label_name_ = python.attr("label_name").cast<std::string>();
  }
  ~PythonSource() override {
    const py::gil_scoped_acquire acquired;
    python_ = py::object();
  }
  PythonSource(const PythonSource&) = delete;
  PythonSource& operator=(const PythonSource&) = delete;

  int64_t samples() const override { return samples_; }

  void take(std::span<const int64_t> samples, Batch& batch) const override {
    std::vector<NamedArray> arrays = fetch(samples);
    const bool labelled =
        std::any_of(arrays.begin(), arrays.end(), [&](const NamedArray& array) { return array.name == label_name_; });
    const std::string name = samples.size() == 1 ? describe(samples[0]) : "a batch";
    const Dataset made = make_dataset(std::move(arrays), {.labels = labelled ? label_name_ : ""}, name);
    const Dataset fitted = fit_batches(made, inputs_, {.transforms = transforms_});
    batch.inputs = take_batch(fitted, 0, fitted.samples());
    batch.labels.reset();
    if (labelled) batch.labels = take_labels(fitted, 0, fitted.samples());
  }

  std::string describe(int64_t sample) const override {
    const py::gil_scoped_acquire acquired;
    return python_.attr("describe")(sample).cast<std::string>();
  }

 private:
  std::vector<NamedArray> fetch(std::span<const int64_t> samples) const {
    const py::gil_scoped_acquire acquired;
    try {
      const py::object made = python_.attr("fetch")(std::vector<int64_t>(samples.begin(), samples.end()));
      if (py::isinstance<py::str>(made)) throw_error(ErrorKind::invalid_input, made.cast<std::string>());
      std::vector<NamedArray> arrays;
      for (const auto& [name, tensor] : made.cast<std::vector<std::pair<std::string, at::Tensor>>>())
        arrays.push_back({name, read_array(tensor)});
      return arrays;
    } catch (const py::error_already_set& error) {
      throw_error(ErrorKind::internal, "the processes that load samples: ", error.what());
    }
  }

  py::object python_;
  const std::vector<DataSignature> inputs_;
  const std::string transforms_;
  int64_t samples_ = 0;
  std::string label_name_;
};

}  // namespace

std::shared_ptr<const BatchSource> make_python_source(const py::object& python, std::vector<DataSignature> inputs,
                                                      const BatchOptions& options) {
  return std::make_shared<PythonSource>(python, std::move(inputs), options.transforms);
}

}  // namespace lissome
