// The signature of an exported program: which placeholders are weights, which are the caller's inputs, what the outputs
// are for, and in which sizes named dimensions may come.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "lissome/program/pt2/archive.h"
#include "lissome/program/pt2/graph.h"
#include "lissome/program/pt2/tensors.h"

namespace lissome {

// Named dimensions of the inputs with their ranges, from input sizes and range_constraints; before any type is read.
void read_dimensions(const Pt2Archive& archive, Program& program);

class SignatureReader {
 public:
  SignatureReader(const Pt2Archive& archive, Program& program, GraphReader& graph, Pt2Tensors& tensors);

  void read_inputs();   // before the nodes
  void read_outputs();  // after them

 private:
  void read_input(const Json& spec, const Json& placeholder);
  void read_weight(const std::string& value_name, const std::string& name, WeightRole role, bool persistent = true);
  void read_user_input(const Json& argument);
  void read_constant_input(const Json& spec);
  void read_output(const Json& spec, const Json& result);
  void add_output(const Json& argument, std::string name);
  std::string make_unique(const std::string& name);  // of the outputs so far
  void add_write(const Json& spec, std::string_view target_key);
  std::string next_input_name(const std::string& fallback);

  const Pt2Archive& archive_;
  Program& program_;
  GraphReader& graph_;
  Pt2Tensors& tensors_;
  const Json* call_ = nullptr;  // signature of the root call, null when the archive has none
  std::vector<std::string> input_names_, output_names_;
  std::unordered_set<std::string> names_;  // of outputs
  std::map<std::string, int> suffixes_;    // the last one behind a name that outputs share
  size_t next_input_ = 0, next_output_ = 0;
  Json input_leaves_ = Json::array(), output_leaves_ = Json::array();
};

}  // namespace lissome
