// The container `model.lissome`: program text, weights, plan, measurements. model_file.cpp draws the layout and owns
// it. The pieces stay opaque here: program/save turns text and arrays into a Program, runtime turns the plan into a
// Session.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lissome/base/file.h"
#include "lissome/base/tensor.h"
#include "lissome/base/text.h"

namespace lissome {

struct ModelFile {
  int version = 0;                      // of the format, set when read
  std::string written_by;               // "lissome 0.1.0", set when read
  std::string program;                  // program text; empty in a finished model without its program
  std::vector<NamedArray> weights;      // borrow the mapping; tied weights share storage (written once)
  std::string plan;                     // JSON text of the plan, empty when there is none
  std::vector<NamedArray> plan_arrays;  // prepacked weights, borrow the mapping
  std::string metadata;                 // JSON text: call tree, roles, measurements, machine; empty object when none
};

// Throws invalid_input (not a lissome model, broken, hostile; a newer format names the version that wrote it).
ModelFile load_model_file(const std::string& path);
// A .lissome by its content, whatever the file is called; nothing for other archives and files.
std::optional<ModelFile> try_load_model_file(const std::string& path);
void save_model_file(const std::string& path, const ModelFile& model);
// Sealed, without its name yet: AtomicFile::publish() takes no longer for a large model than for a small.
std::unique_ptr<AtomicFile> seal_model_file(const std::string& path, const ModelFile& model);
// Bytes of the file that save_model_file() would write.
int64_t count_model_file(const ModelFile& model);

}  // namespace lissome
