// Inputs and outputs of a session as numpy arrays and Python numbers. Element types that numpy lacks (bf16, f8) are
// pairs: an unsigned integer array of the same bytes, and the name of the type.
#pragma once

#include <pybind11/numpy.h>

#include <vector>

#include "lissome/runtime.h"

namespace lissome {

namespace py = pybind11;

// Arrays in C order, aligned and in this machine's byte order are lent; others are copied. Numbers become arrays
// without dimensions. Throws py::type_error for a value of another type, invalid_input for an element type that no
// model takes.
class GivenInputs {
 public:
  explicit GivenInputs(const py::list& values);  // needs the interpreter's lock
  std::span<const TensorView> views() const { return views_; }
  size_t copied() const { return copied_; }  // arrays that were not lent: for tests

 private:
  TensorView lend(const py::array& given, std::optional<Dtype> dtype);

  std::vector<py::object> kept_;
  std::vector<Array> numbers_;
  std::vector<TensorView> views_;
  size_t copied_ = 0;
};

// The outputs of a run as Python objects, in the plan's order: arrays that own the memory the session wrote to,
// numbers, None.
py::list write_outputs(const Plan& plan, std::vector<Array> arrays);

}  // namespace lissome
