// _lissome: the faces that make models, as Python sees them, nothing else. How a module's arguments nest and
// which forms of data there are is the business of the Python files beside it. Finished models go to _runtime, which
// runs them. The interpreter's lock is released while C++ works.
#include "lissome/python/binding.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/ivalue.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/python/runtime/raise_error.h"
#include "lissome/report.h"
#include "lissome/train.h"
#include "lissome/tune.h"

namespace lissome {
namespace {

// Errors of libtorch without their stack traces. A failed check is about the model or the data, so invalid_input; a
// failed internal assertion is not.
void translate_torch_errors(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const c10::OutOfMemoryError& error) {
    raise_error(ErrorKind::over_budget, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    const bool asserted = text.find("INTERNAL ASSERT") != std::string::npos;
    raise_error(asserted ? ErrorKind::internal : ErrorKind::invalid_input,
                "libtorch refuses what is asked for: " + text);
  }
}

// ---- models
// ----------------------------------------------------------------------------------------------------------

FileContents choose_contents(bool keep_original) {
  return keep_original ? FileContents::plan_and_program : FileContents::plan;
}

MadeModel lower_as_it_is(const Program& program, const LowerOptions& options, FileContents contents,
                         const SessionOptions& session) {
  auto plan = std::make_shared<const Plan>(lower_program(program, options));
  return {pack_prepared(program, *plan, contents), plan, session};
}

// Imported, nothing optimized, every node by the reference.
py::capsule load_model(const std::string& path, int threads, int64_t memory) {
  const LowerOptions options{.effort = Effort::fast, .threads = threads, .forced = {{"*", "reference"}}};
  std::optional<MadeModel> made;
  {
    const py::gil_scoped_release released;
    made = lower_as_it_is(open_model_file(path), options, FileContents::plan_and_program,
                          {.threads = threads, .memory = memory});
  }
  return give_model(std::move(*made));
}

using MakeForm = std::function<PrecisionForm(PrecisionMaker&)>;

py::capsule make_form(const Program& original, const Dataset* data, int threads, bool keep_original,
                      const MakeForm& make) {
  std::optional<MadeModel> made;
  {
    const py::gil_scoped_release released;
    const auto program = std::make_shared<const Program>(prepare_inference(original));
    std::optional<Dataset> fitted;
    if (data != nullptr) fitted = fit_dataset(*data, describe_inputs(*program));
    const LowerOptions lowering{.effort = Effort::fast, .threads = threads};
    PrecisionMaker maker(program, fitted ? &*fitted : nullptr, lowering);
    const PrecisionForm form = make(maker);
    made = MadeModel{pack_form(form, choose_contents(keep_original)), form.plan, {.threads = threads}};
  }
  return give_model(std::move(*made));
}

py::capsule prepare_model(const Program& original, const Dataset* data, const std::string& precision, int threads,
                          bool keep_original) {
  const Dtype dtype = parse_target_precision(precision);
  return make_form(original, data, threads, keep_original, [&](PrecisionMaker& maker) { return maker.make(dtype); });
}

struct QuantizeArguments {
  std::string kind, observer, rounding, loss;
  std::vector<std::string> only, skip;
  double least_signal = 0;
  RecoveryOptions recovery;
  int bits = 8, threads = 0;
  bool keep_original = false;
};

py::capsule quantize_model(const Program& original, const Dataset* data, const Dataset* train_data,
                           const QuantizeArguments& arguments) {
  const QuantizeKind kind = parse_quantize_kind(arguments.kind);
  if ((kind == QuantizeKind::trained) != (train_data != nullptr))
    throw_error(ErrorKind::usage, train_data == nullptr ? R"(kind="qat" needs train_data, whose samples it trains on)"
                                                        : R"(train_data is for kind="qat")");
  const bool packs = kind == QuantizeKind::weight;
  QuantizeOptions options;
  options.range = parse_range_method(arguments.observer);
  options.dynamic_linears = kind == QuantizeKind::dynamic;
  options.rounding = parse_rounding(arguments.rounding);
  options.only = arguments.only;
  options.keep_float = arguments.skip;
  if (!packs && arguments.bits != 8)
    throw_error(ErrorKind::usage, "bits is ", arguments.bits, R"(; 8 is allowed, and 4 with kind="weight")");
  const auto train = [&](const Program& program) {
    RecoveryOptions recovery = arguments.recovery;
    recovery.loss = parse_loss(arguments.loss, program);
    recovery.threads = arguments.threads;
    return recover_accuracy(program, fit_dataset(*train_data, describe_inputs(program)), recovery).program;
  };
  return make_form(original, data, arguments.threads, arguments.keep_original, [&](PrecisionMaker& maker) {
    if (train_data != nullptr) return maker.quantize_trained(original, train, options);
    return packs ? maker.quantize_weights(arguments.bits, options) : maker.quantize(options, arguments.least_signal);
  });
}

// ---- optimize
// --------------------------------------------------------------------------------------------------------

struct OptimizeArguments {
  std::optional<std::string> metric;
  std::optional<Quantity> latency, memory, size, throughput, first_answer;
  Quantity max_loss, time;
  int64_t batch = 0;
  int threads = 0;
  uint64_t seed = 0;
  bool keep_original = false;
  std::string name, command, front;
};

OptimizeOptions make_options(const OptimizeArguments& arguments) {
  OptimizeOptions options;
  if (arguments.metric) options.metric = parse_metric(*arguments.metric);
  if (arguments.latency) options.goal.latency = read_quantity(*arguments.latency, parse_duration);
  if (arguments.memory) options.goal.memory = static_cast<int64_t>(read_quantity(*arguments.memory, parse_bytes));
  if (arguments.size) options.goal.size = static_cast<int64_t>(read_quantity(*arguments.size, parse_bytes));
  if (arguments.throughput) options.goal.throughput = read_quantity(*arguments.throughput, parse_rate);
  if (arguments.first_answer) options.goal.first_answer = read_quantity(*arguments.first_answer, parse_duration);
  options.goal.max_loss = read_quantity(arguments.max_loss, parse_fraction);
  options.seconds = read_quantity(arguments.time, parse_duration);
  if (arguments.threads < 0)
    throw_error(ErrorKind::usage, "threads is ", arguments.threads, "; 0 (all) or more is allowed");
  options.batch = arguments.batch;
  options.threads = arguments.threads;
  options.seed = arguments.seed;
  options.model_name = arguments.name;
  options.front = arguments.front;
  options.command = arguments.command;
  return options;
}

// The model, and the report.
py::tuple optimize_model(const Program& program, const Dataset* data, const OptimizeArguments& arguments,
                         const py::object& progress) {
  const OptimizeOptions options = make_options(arguments);
  const WorkControl control = make_control(progress);
  std::optional<MadeModel> made;
  std::string report;
  {
    const py::gil_scoped_release released;
    const Optimized optimized = optimize(program, data, options, control);
    made = MadeModel{pack_with_record(optimized.program, optimized.plan, to_json(optimized.record),
                                      choose_contents(arguments.keep_original)),
                     std::make_shared<const Plan>(optimized.plan),
                     {.threads = optimized.record.threads}};
    report = render_html(optimized.record);
  }
  return py::make_tuple(give_model(std::move(*made)), report);
}

Dataset gather_data(const std::vector<std::pair<std::string, at::Tensor>>& tensors, const std::string& labels) {
  std::vector<NamedArray> arrays;
  for (const auto& [name, tensor] : tensors) arrays.push_back({name, read_array(tensor)});
  return make_dataset(std::move(arrays), {.labels = labels}, "data");
}

// What is done to data before the model sees them: which array feeds which input, what is rounded. Nothing for image
// files, which are decoded for it, and for data that do not fit: what reads them next says so. `skip_bad`: samples that
// hold NaN are left out.
std::vector<std::string> describe_fit(const Program& program, const Dataset& data, bool skip_bad) {
  if (!data.image_files.empty()) return {};
  try {
    const BadSamples bad_samples = skip_bad ? BadSamples::skip : BadSamples::fatal;
    return fit_batches(data, describe_inputs(program), {.bad_samples = bad_samples}).notes;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Program open_model_file(const std::string& path) {
  const ModelKind kind = detect_model_kind(path);
  if (kind == ModelKind::pt2) return import_pt2(path);
  if (kind == ModelKind::lissome) return load_program(path);
  refuse_model_kind(path, kind);
}

py::capsule give_model(MadeModel made) {
  return py::capsule(new MadeModel(std::move(made)), kMadeModel, [](PyObject* capsule) {
    delete static_cast<MadeModel*>(PyCapsule_GetPointer(capsule, kMadeModel));
  });
}

Array read_array(const at::Tensor& tensor) {
  if (tensor.has_storage()) {
    const size_t needed = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size(),
                                                           static_cast<size_t>(tensor.storage_offset()));
    if (tensor.storage().nbytes() < needed)
      throw_error(ErrorKind::invalid_input, "the storage of a tensor holds ", tensor.storage().nbytes(),
                  " bytes, its elements need ", needed);
  }
  const at::Tensor dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
  auto* const owner = new at::Tensor(dense);
  return {dtype_of(dense.scalar_type()), dense.sizes().vec(),
          std::shared_ptr<void>(dense.data_ptr(), [owner](void*) { delete owner; })};
}

WorkControl make_control(const py::object& progress) {
  const auto stopped = std::make_shared<bool>(false);
  WorkControl control;
  control.should_stop = [stopped] {
    if (*stopped) return true;
    const py::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) {
      if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) == 0) throw py::error_already_set();
      PyErr_Clear();
      *stopped = true;
    }
    return *stopped;
  };
  if (!progress.is_none()) {
    control.on_progress = [progress, stopped](const Progress& now) {
      const py::gil_scoped_acquire acquired;
      try {
        progress(now.stage, now.message, now.fraction, now.seconds_left);
      } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_KeyboardInterrupt)) throw;
        *stopped = true;
      }
    };
  }
  return control;
}

}  // namespace lissome

PYBIND11_MODULE(_lissome, module) {
  using namespace lissome;  // NOLINT: the module is the namespace
  py::register_local_exception_translator(translate_errors);
  py::register_local_exception_translator(translate_torch_errors);

  py::class_<Program>(module, "Program")
      .def_property(
          "input_tree", [](const Program& program) { return program.call_tree.inputs; },
          [](Program& program, std::string tree) { program.call_tree.inputs = std::move(tree); })
      .def_property_readonly("input_names",
                             [](const Program& program) {
                               std::vector<std::string> names;
                               for (const ProgramInput& input : program.inputs) names.push_back(input.name);
                               return names;
                             })
      .def_property_readonly("output_names", [](const Program& program) {
        std::vector<std::string> names;
        for (const ProgramOutput& output : program.outputs) names.push_back(output.name);
        return names;
      });
  py::class_<Dataset>(module, "Dataset")
      .def_property_readonly("samples", &Dataset::samples)
      .def_property_readonly("has_labels", [](const Dataset& data) { return data.labels.has_value(); });
  py::class_<OptimizeArguments>(module, "OptimizeArguments")
      .def(py::init<>())
      .def_readwrite("metric", &OptimizeArguments::metric)
      .def_readwrite("latency", &OptimizeArguments::latency)
      .def_readwrite("memory", &OptimizeArguments::memory)
      .def_readwrite("size", &OptimizeArguments::size)
      .def_readwrite("throughput", &OptimizeArguments::throughput)
      .def_readwrite("first_answer", &OptimizeArguments::first_answer)
      .def_readwrite("front", &OptimizeArguments::front)
      .def_readwrite("max_loss", &OptimizeArguments::max_loss)
      .def_readwrite("time", &OptimizeArguments::time)
      .def_readwrite("batch", &OptimizeArguments::batch)
      .def_readwrite("threads", &OptimizeArguments::threads)
      .def_readwrite("seed", &OptimizeArguments::seed)
      .def_readwrite("keep_original", &OptimizeArguments::keep_original)
      .def_readwrite("name", &OptimizeArguments::name)
      .def_readwrite("command", &OptimizeArguments::command);

  py::class_<QuantizeArguments>(module, "QuantizeArguments")
      .def(py::init<>())
      .def_readwrite("kind", &QuantizeArguments::kind)
      .def_readwrite("observer", &QuantizeArguments::observer)
      .def_readwrite("rounding", &QuantizeArguments::rounding)
      .def_readwrite("only", &QuantizeArguments::only)
      .def_readwrite("skip", &QuantizeArguments::skip)
      .def_readwrite("least_signal", &QuantizeArguments::least_signal)
      .def_readwrite("bits", &QuantizeArguments::bits)
      .def_readwrite("loss", &QuantizeArguments::loss)
      .def_property(
          "epochs", [](const QuantizeArguments& to) { return to.recovery.epochs; },
          [](QuantizeArguments& to, int64_t epochs) { to.recovery.epochs = epochs; })
      .def_property(
          "batch", [](const QuantizeArguments& to) { return to.recovery.batch; },
          [](QuantizeArguments& to, int64_t batch) { to.recovery.batch = batch; })
      .def_property(
          "lr", [](const QuantizeArguments& to) { return to.recovery.learning_rate; },
          [](QuantizeArguments& to, double rate) { to.recovery.learning_rate = rate; })
      .def_property(
          "seed", [](const QuantizeArguments& to) { return to.recovery.seed; },
          [](QuantizeArguments& to, uint64_t seed) { to.recovery.seed = seed; })
      .def_readwrite("threads", &QuantizeArguments::threads)
      .def_readwrite("keep_original", &QuantizeArguments::keep_original);

  const py::call_guard<py::gil_scoped_release> unlocked;
  module.def("open_program", &open_model_file, unlocked);
  module.def("load_model", &load_model);
  module.def("describe_eval_form", &describe_eval_form);
  module.def("prepare_model", &prepare_model);
  module.def("quantize_model", &quantize_model);
  module.def(
      "load_dataset",
      [](const std::string& path, const std::string& labels) { return load_dataset(path, {.labels = labels}); },
      unlocked);
  module.def("make_dataset", &gather_data);
  module.def("describe_fit", &describe_fit, unlocked);
  module.def("write_file", [](const std::string& path, const std::string& text) { write_file(path, text); });
  module.def("optimize", &optimize_model);
  bind_training(module);
}
