// C++ errors as the exceptions of lissome/errors.py, for both bindings. Only what pybind11 does not translate itself,
// or translates to an exception that is no lissome.Error.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <new>
#include <string>

#include "lissome/base.h"
#include "lissome/runtime.h"

namespace lissome {

namespace py = pybind11;  // NOLINT: the name that pybind11's users give it

inline void raise_error(ErrorKind kind, const std::string& message) {
  const py::object classes = py::module_::import("lissome.errors").attr("BY_KIND");
  const py::object type = classes[py::str(std::string(error_kind_name(kind)))];
  PyErr_SetString(type.ptr(), message.c_str());
}

inline void translate_errors(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise_error(error.kind(), error.message());
  } catch (const std::bad_alloc&) {
    raise_error(ErrorKind::over_budget, "out of memory");
  } catch (const RunInterrupted&) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

}  // namespace lissome
