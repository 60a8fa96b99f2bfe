// Batches that Python code makes: what lissome/python/workers.py gives, as the loader takes it.
#pragma once

#include <memory>
#include <vector>

#include "lissome/data.h"
#include "lissome/python/binding.h"
#include "lissome/train.h"

namespace lissome {

// `python` has `samples`, `label_name`, describe(sample) and fetch(samples), which several threads call at once: arrays
// by name, or a text that says what is wrong with these samples. Each batch is fitted to the inputs as a dataset is.
// May be called without the interpreter's lock, and so may all that is made.
std::shared_ptr<const BatchSource> make_python_source(const py::object& python, std::vector<DataSignature> inputs,
                                                      const BatchOptions& options);

}  // namespace lissome
