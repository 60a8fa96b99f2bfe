// What the files of the binding share.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <string>
#include <variant>

#include "lissome/measure.h"
#include "lissome/program.h"
#include "lissome/python/runtime/made_model.h"

namespace lissome {

// .pt2 or .lissome; anything else is refused by name.
Program open_model_file(const std::string& path);

// A capsule for _runtime, see runtime/made_model.h. Needs the interpreter's lock.
py::capsule give_model(MadeModel made);

// Shares the tensor's memory where it is dense in row order.
Array read_array(const at::Tensor& tensor);

// Ctrl-C asks for the best so far. Python's own handler only sets a mark, which is looked for between rounds; or it
// raises inside of the caller's `progress`.
WorkControl make_control(const py::object& progress);

using Quantity = std::variant<double, std::string>;  // 0.005 or "5ms"

template <typename Parse>
double read_quantity(const Quantity& quantity, Parse parse) {
  if (const double* number = std::get_if<double>(&quantity)) return *number;
  return static_cast<double>(parse(std::get<std::string>(quantity)));
}

// train() and what it returns.
void bind_training(py::module_& module);

}  // namespace lissome
