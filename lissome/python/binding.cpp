// _lissome: the faces as Python sees them, nothing else. What a module's arguments nest like, and which forms of data
// there are, is the business of the Python files beside it; here everything is flat: a list of tensors and numbers in,
// a list out. The interpreter's lock is released while C++ works; errors become classes made from base's one table.
#include "lissome/python/binding.h"

#include <torch/csrc/autograd/python_variable.h>

#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "lissome/allow_op.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/report.h"
#include "lissome/tune.h"

namespace lissome {
namespace {

// ---- errors
// ----------------------------------------------------------------------------------------------------------

struct ErrorClass {
  ErrorKind kind;
  const char* name;
  PyObject* type = nullptr;
};

// Never given back: a module is loaded once a process.
std::vector<ErrorClass>& error_classes() {
  static std::vector<ErrorClass> classes = {
      {ErrorKind::usage, "UsageError"},
      {ErrorKind::invalid_input, "InvalidInputError"},
      {ErrorKind::unsupported, "UnsupportedError"},
      {ErrorKind::over_budget, "OverBudgetError"},
      {ErrorKind::io, "InputOutputError"},
      {ErrorKind::internal, "InternalError"},
  };
  return classes;
}

void make_error_classes(py::module_& module) {
  PyObject* base = PyErr_NewException("lissome.Error", PyExc_Exception, nullptr);
  module.attr("Error") = py::handle(base);
  const py::module_ builtins = py::module_::import("builtins");
  for (ErrorClass& row : error_classes()) {
    const py::object also = builtins.attr(std::string(python_exception(row.kind)).c_str());
    const py::tuple bases = py::make_tuple(py::handle(base), also);
    row.type = PyErr_NewException((std::string("lissome.") + row.name).c_str(), bases.ptr(), nullptr);
    module.attr(row.name) = py::handle(row.type);
  }
}

void raise_error(ErrorKind kind, const std::string& message) {
  for (const ErrorClass& row : error_classes()) {
    if (row.kind == kind) PyErr_SetString(row.type, message.c_str());
  }
}

void translate_errors(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise_error(error.kind(), error.message());
  } catch (const c10::Error& error) {
    raise_error(ErrorKind::internal, error.what_without_backtrace());
  }
}

// ---- values
// ----------------------------------------------------------------------------------------------------------

c10::IValue read_value(const py::handle& object) {
  if (THPVariable_Check(object.ptr())) return py::cast<at::Tensor>(object);
  if (PyBool_Check(object.ptr())) return object.cast<bool>();
  if (PyLong_Check(object.ptr())) return object.cast<int64_t>();
  if (PyFloat_Check(object.ptr())) return object.cast<double>();
  throw_error(ErrorKind::invalid_input, "an input is of type ", Py_TYPE(object.ptr())->tp_name,
              "; tensors and numbers are allowed");
}

py::object write_value(const c10::IValue& value) {
  if (value.isTensor()) return py::cast(value.toTensor());
  if (value.isBool()) return py::bool_(value.toBool());
  if (value.isInt()) return py::int_(value.toInt());
  if (value.isDouble()) return py::float_(value.toDouble());
  return py::none();
}

// ---- models
// ----------------------------------------------------------------------------------------------------------

// A finished model: runs, and is saved with its record.
class Model {
 public:
  Model(ModelFile file, std::shared_ptr<const Plan> plan, const SessionOptions& options)
      : file_(std::move(file)), plan_(std::move(plan)), options_(options), session_(Session(plan_, options)) {}

  // The same model and weights, padding one dimension up to buckets that `sample` proves.
  std::unique_ptr<Model> pad_to(const std::string& dimension, std::vector<int64_t> sizes,
                                std::map<std::string, double> pads, const py::list& sample) const {
    const std::vector<c10::IValue> inputs = read_values(sample);
    const py::gil_scoped_release released;
    const LentInputs lent(inputs);
    auto padded = std::make_unique<Model>(file_, plan_, options_);
    padded->session_ =
        BucketedSession(std::get<Session>(std::move(padded->session_)),
                        {.dimension = dimension, .sizes = std::move(sizes), .pads = std::move(pads)}, lent.views());
    return padded;
  }

  py::list run(const py::list& values) {
    const std::vector<c10::IValue> inputs = read_values(values);
    std::vector<c10::IValue> outputs;
    {
      const py::gil_scoped_release released;
      const LentInputs lent(inputs);
      outputs = read_outputs(*plan_, std::visit([&](auto& session) { return session.run(lent.views()); }, session_));
    }
    py::list results;
    for (const c10::IValue& output : outputs) results.append(write_value(output));
    return results;
  }

  void save(const std::string& path) const {
    const py::gil_scoped_release released;
    save_model_file(path, file_);
  }

  std::vector<std::string> input_names() const {
    std::vector<std::string> names;
    for (const PlanInput& input : plan_->inputs) names.push_back(input.name);
    return names;
  }
  const Plan& plan() const { return *plan_; }
  int threads() const { return session().threads(); }
  // Of the sample that proved the buckets, relative to its largest element; none without buckets.
  std::optional<double> seen_difference() const {
    const auto* bucketed = std::get_if<BucketedSession>(&session_);
    return bucketed == nullptr ? std::nullopt : std::optional(bucketed->seen_difference());
  }
  StreamFacts stream() const {
    const py::gil_scoped_release released;  // a call of another thread may be in the way
    return session().stream();
  }
  const std::string& metadata() const { return file_.metadata; }

 private:
  static std::vector<c10::IValue> read_values(const py::list& values) {
    std::vector<c10::IValue> inputs;
    for (const py::handle& value : values) inputs.push_back(read_value(value));
    return inputs;
  }
  const Session& session() const {
    const auto* bucketed = std::get_if<BucketedSession>(&session_);
    return bucketed == nullptr ? std::get<Session>(session_) : bucketed->session();
  }

  ModelFile file_;
  std::shared_ptr<const Plan> plan_;
  SessionOptions options_;
  std::variant<Session, BucketedSession> session_;
};

std::unique_ptr<Model> make_model(const Program& program, const Plan& plan, const Json& record,
                                  const SessionOptions& session) {
  return std::make_unique<Model>(pack_with_plan(program, plan, record), std::make_shared<const Plan>(plan), session);
}

int64_t read_memory(const std::optional<Quantity>& memory) {
  if (!memory) return 0;
  const double bytes = read_quantity(*memory, parse_bytes);
  if (!(bytes >= 1 && bytes < 9e18)) throw_error(ErrorKind::usage, "memory is ", bytes, " bytes; 1 or more is allowed");
  return static_cast<int64_t>(bytes);
}

// A finished model as it is; any other imported, nothing optimized, every node by the reference.
std::unique_ptr<Model> load_model(const std::string& path, int threads, const std::optional<Quantity>& memory) {
  const py::gil_scoped_release released;
  const SessionOptions session{.threads = threads, .memory = read_memory(memory)};
  if (detect_model_kind(path) == ModelKind::lissome) {
    ModelFile file = load_model_file(path);
    if (!file.plan.empty()) {
      auto plan = std::make_shared<const Plan>(read_plan(file));
      return std::make_unique<Model>(std::move(file), std::move(plan), session);
    }
  }
  const Program program = open_model_file(path);
  LowerOptions options;
  options.effort = Effort::fast;
  options.threads = threads;
  options.forced = {{"*", "reference"}};
  return make_model(program, lower_program(program, options), Json(), session);
}

std::unique_ptr<Model> prepare_model(const Program& original, int threads) {
  const py::gil_scoped_release released;
  const Program program = prepare_inference(original);
  LowerOptions options;
  options.effort = Effort::fast;
  options.threads = threads;
  return make_model(program, lower_program(program, options), Json(), {.threads = threads});
}

// ---- optimize
// --------------------------------------------------------------------------------------------------------

struct OptimizeArguments {
  std::optional<std::string> metric;
  std::optional<Quantity> latency, memory;
  Quantity max_loss, time;
  int64_t batch = 1;
  int threads = 0;
  uint64_t seed = 0;
  std::string name, command;
};

OptimizeOptions make_options(const OptimizeArguments& arguments) {
  OptimizeOptions options;
  if (arguments.metric) options.metric = parse_metric(*arguments.metric);
  if (arguments.latency) options.goal.latency = read_quantity(*arguments.latency, parse_duration);
  if (arguments.memory) options.goal.memory = static_cast<int64_t>(read_quantity(*arguments.memory, parse_bytes));
  options.goal.max_loss = read_quantity(arguments.max_loss, parse_fraction);
  options.seconds = read_quantity(arguments.time, parse_duration);
  if (arguments.batch < 1) throw_error(ErrorKind::usage, "batch is ", arguments.batch, "; at least 1 is allowed");
  if (arguments.threads < 0)
    throw_error(ErrorKind::usage, "threads is ", arguments.threads, "; 0 (all) or more is allowed");
  options.batch = arguments.batch;
  options.threads = arguments.threads;
  options.seed = arguments.seed;
  options.model_name = arguments.name;
  options.command = arguments.command;
  return options;
}

struct Finished {
  std::unique_ptr<Model> model;
  std::string html;  // the report
};

Finished optimize_model(const Program& program, const Dataset* data, const OptimizeArguments& arguments,
                        const py::object& progress) {
  const OptimizeOptions options = make_options(arguments);
  const WorkControl control = make_control(progress);
  const py::gil_scoped_release released;
  const Optimized optimized = optimize(program, data, options, control);
  return {
      make_model(optimized.program, optimized.plan, to_json(optimized.record), {.threads = optimized.record.threads}),
      render_html(optimized.record)};
}

Dataset gather_data(const std::vector<std::pair<std::string, at::Tensor>>& tensors, const std::string& labels) {
  std::vector<NamedArray> arrays;
  for (const auto& [name, tensor] : tensors) arrays.push_back({name, read_array(tensor)});
  return make_dataset(std::move(arrays), {.labels = labels}, "data");
}

}  // namespace

Program open_model_file(const std::string& path) {
  const ModelKind kind = detect_model_kind(path);
  if (kind == ModelKind::pt2) return import_pt2(path);
  if (kind == ModelKind::lissome) return load_program(path);
  refuse_model_kind(path, kind);
}

Array read_array(const at::Tensor& tensor) {
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
  make_error_classes(module);
  py::register_exception_translator(translate_errors);
  module.attr("version") = std::string(lissome_version());

  py::class_<Model>(module, "Model")
      .def("run", &Model::run)
      .def("pad_to", &Model::pad_to)
      .def_property_readonly("seen_difference", &Model::seen_difference)
      .def("save", &Model::save)
      .def_property_readonly("input_names", &Model::input_names)
      .def_property_readonly("input_tree", [](const Model& model) { return model.plan().input_tree; })
      .def_property_readonly("output_tree", [](const Model& model) { return model.plan().output_tree; })
      .def_property_readonly("metadata", &Model::metadata)
      .def_property_readonly("threads", &Model::threads)
      .def_property_readonly("stream", &Model::stream);
  py::class_<StreamFacts>(module, "StreamFacts")
      .def_readonly("weights", &StreamFacts::weights)
      .def_readonly("streamed", &StreamFacts::streamed)
      .def_readonly("bytes_per_second", &StreamFacts::bytes_per_second);
  py::class_<Program>(module, "Program").def_property_readonly("input_names", [](const Program& program) {
    std::vector<std::string> names;
    for (const ProgramInput& input : program.inputs) names.push_back(input.name);
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
      .def_readwrite("max_loss", &OptimizeArguments::max_loss)
      .def_readwrite("time", &OptimizeArguments::time)
      .def_readwrite("batch", &OptimizeArguments::batch)
      .def_readwrite("threads", &OptimizeArguments::threads)
      .def_readwrite("seed", &OptimizeArguments::seed)
      .def_readwrite("name", &OptimizeArguments::name)
      .def_readwrite("command", &OptimizeArguments::command);

  const py::call_guard<py::gil_scoped_release> unlocked;
  module.def("open_program", &open_model_file, unlocked);
  module.def("load_model", &load_model);
  module.def("prepare_model", &prepare_model);
  module.def(
      "load_dataset",
      [](const std::string& path, const std::string& labels) { return load_dataset(path, {.labels = labels}); },
      unlocked);
  module.def("make_dataset", &gather_data);
  module.def("allow_op", &allow_op, py::arg("name"),
             "Lets models call an op of your own by its exact name, such as 'mylib::my_op' or 'mylib::my_op.overload', "
             "from now on in this process. Define it first: torch.library, or torch.ops.load_library(file). Ops of "
             "PyTorch's own namespaces cannot be allowed.");
  module.def("write_file", [](const std::string& path, const std::string& text) { write_file(path, text); });
  module.def("optimize", [](const Program& program, const Dataset* data, const OptimizeArguments& arguments,
                            const py::object& progress) {
    Finished finished = optimize_model(program, data, arguments, progress);
    return py::make_tuple(std::move(finished.model), finished.html);
  });
  bind_training(module);
}
