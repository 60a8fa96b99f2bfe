// _runtime: finished models as Python sees them, free of torch. How a model's arguments nest is the business of the
// Python files beside it; here everything is flat: a list of arrays and numbers in, a list out.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "lissome/allow_op.h"
#include "lissome/python/runtime/finished_model.h"
#include "lissome/python/runtime/raise_error.h"

namespace lissome {
namespace {

// Takes what is in it: once for each capsule.
std::unique_ptr<FinishedModel> adopt_model(const py::capsule& capsule) {
  auto* const made = static_cast<MadeModel*>(PyCapsule_GetPointer(capsule.ptr(), kMadeModel));
  if (made == nullptr) throw py::error_already_set();
  LISSOME_CHECK(made->plan != nullptr, "the model was taken already");
  const py::gil_scoped_release released;
  return std::make_unique<FinishedModel>(std::move(*made));
}

// "int" and "float" are numbers of Python; "" is not known before a run.
std::string name_type(const PlanValue& value) {
  switch (value.kind) {
    case PlanKind::integer: return "int";
    case PlanKind::floating: return "float";
    case PlanKind::boolean: return "bool";
    default: return value.sized ? std::string(dtype_name(value.dtype)) : std::string();
  }
}

// Name, element type, and sizes: numbers, or text where they depend on the call. No sizes where they are not known.
py::tuple describe_value(const Plan& plan, const std::string& name, PlanValueId id) {
  if (!is_value(id)) return py::make_tuple(name, "", py::none());
  const PlanValue& value = plan.value(id);
  if (!value.sized) return py::make_tuple(name, name_type(value), py::none());
  py::list sizes;
  for (const SizeExpression& size : value.sizes) {
    const std::optional<int64_t> constant = size.constant();
    sizes.append(constant ? py::object(py::int_(*constant)) : py::object(py::str(size.text())));
  }
  return py::make_tuple(name, name_type(value), py::tuple(sizes));
}

template <typename Named>
py::list describe_values(const Plan& plan, const std::vector<Named>& named) {
  py::list described;
  for (const Named& row : named) described.append(describe_value(plan, row.name, row.value));
  return described;
}

// Python's torch knows where the libraries are that libtorch needs.
void bring_libtorch() {
  const py::gil_scoped_acquire acquired;
  try {
    py::module_::import("torch");
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    throw_error(ErrorKind::unsupported, "parts of this model run in libtorch, and torch cannot be imported: ",
                std::string(py::str(error.value())), "\nInstall it: pip install lissome torch");
  }
}

// Inputs that the module writes to in PyTorch.
std::vector<std::string> list_written_inputs(const Plan& plan) {
  std::vector<std::string> written;
  for (const PlanInput& input : plan.inputs) {
    const auto writes_to = [&](const PlanWrite& write) { return write.target == input.value; };
    if (std::any_of(plan.writes.begin(), plan.writes.end(), writes_to)) written.push_back(input.name);
  }
  return written;
}

std::unique_ptr<FinishedModel> load_model(const std::string& path, int threads, int64_t memory) {
  const py::gil_scoped_release released;
  std::optional<MadeModel> made = read_finished_model(path, {.threads = threads, .memory = memory});
  if (!made) return nullptr;
  if (made->plan->needs_reference()) bring_libtorch();
  return std::make_unique<FinishedModel>(std::move(*made));
}

py::dict list_error_kinds() {
  py::dict kinds;
  for (const ErrorKind kind : {ErrorKind::usage, ErrorKind::invalid_input, ErrorKind::unsupported,
                               ErrorKind::over_budget, ErrorKind::io, ErrorKind::internal})
    kinds[py::str(std::string(error_kind_name(kind)))] = std::string(python_exception(kind));
  return kinds;
}

void bind_model(py::module_& module) {
  using Model = FinishedModel;
  const py::call_guard<py::gil_scoped_release> unlocked;
  py::class_<Model>(module, "Model")
      .def("run", &Model::run)
      .def("pad_to", &Model::pad_to)
      .def("copy", &Model::copy, unlocked)
      .def("save", &Model::save, unlocked)
      .def_property_readonly("seen_difference", &Model::seen_difference)
      .def_property_readonly("inputs",
                             [](const Model& model) { return describe_values(model.plan(), model.plan().inputs); })
      .def_property_readonly("outputs",
                             [](const Model& model) { return describe_values(model.plan(), model.plan().outputs); })
      .def_property_readonly("input_tree", [](const Model& model) { return model.plan().input_tree; })
      .def_property_readonly("output_tree", [](const Model& model) { return model.plan().output_tree; })
      .def_property_readonly("written_inputs", [](const Model& model) { return list_written_inputs(model.plan()); })
      .def_property_readonly("metadata", &Model::metadata)
      .def_property_readonly("threads", [](const Model& model) { return model.session().threads(); })
      .def_property_readonly("asked_threads", [](const Model& model) { return model.options().threads; })
      .def_property_readonly("memory", [](const Model& model) { return model.options().memory; })
      .def_property_readonly("stream", [](const Model& model) {
        const py::gil_scoped_release released;  // a call of another thread may be in the way
        return model.session().stream();
      });
  py::class_<StreamFacts>(module, "StreamFacts")
      .def_readonly("weights", &StreamFacts::weights)
      .def_readonly("streamed", &StreamFacts::streamed)
      .def_readonly("bytes_per_second", &StreamFacts::bytes_per_second);
}

}  // namespace
}  // namespace lissome

PYBIND11_MODULE(_runtime, module) {
  using namespace lissome;  // NOLINT: the module is the namespace
  py::register_local_exception_translator(translate_errors);
  module.attr("version") = std::string(lissome_version());
  module.attr("error_kinds") = list_error_kinds();
  bind_model(module);
  module.def("load_model", &load_model);
  module.def("adopt_model", &adopt_model);
  module.def("count_copies", [](const py::list& values) { return GivenInputs(values).copied(); });
  module.def("parse_bytes", [](const std::string& text) { return parse_bytes(text); });
  module.def("allow_op", &allow_op, py::arg("name"),
             "Lets models call an op of your own by its exact name, such as 'mylib::my_op' or 'mylib::my_op.overload', "
             "from now on in this process. Define it first: torch.library, or torch.ops.load_library(file). Ops of "
             "PyTorch's own namespaces cannot be allowed.");
}
