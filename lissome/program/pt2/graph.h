// One serialized graph -> the nodes of one Program. Used for the model's graph and, through control ops, for each child
// graph. Files: graph.cpp (values and nodes), arguments.cpp (literals), control.cpp (higher-order ops), vmap.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lissome/program/program.h"
#include "lissome/program/pt2/fields.h"
#include "lissome/program/pt2/origin.h"

namespace lissome {

class GraphReader {
 public:
  // Reads from `graph` into `program`. The graph, the program and the origins must outlive the reader. Names of named
  // dimensions that the program declares may occur in types; sizes with others stay unknown.
  GraphReader(const Json& graph, Program& program, OriginTable& origins);

  const Json::array_t& inputs() const { return list_member(graph_, "inputs"); }
  const Json::array_t& outputs() const { return list_member(graph_, "outputs"); }

  // Names become arguments once; a second definition is refused.
  void define(const std::string& name, Argument argument);
  // invalid_input when nothing of that name was made before. Inside of a vmapped stretch, values from outside become
  // operands of its region.
  Argument resolve(const std::string& name);

  // What the graph says of a value, by the kind of the argument that names it ("as_tensor", "as_sym_int", ...).
  ValueType read_type(std::string_view kind, const std::string& name) const;
  // The sizes of a tensor as written, without the check against declared dimensions.
  std::vector<Dimension> read_sizes(const std::string& name) const;
  // The expression of an integer input ("s5"); 0-sized optional when it is plain or unknown.
  std::optional<Dimension> read_integer_expression(const std::string& name) const;

  // All nodes, in order.
  void read_nodes();

  // A literal, a value or a list of them.
  Argument read_argument(const Json& argument);

  // A child graph as a program of its own.
  Program read_body(const Json& graph);

 private:
  void index_types();
  void collect_used_names();
  void read_node(const Json& node);
  void read_operator(const Json& node, const std::string& name);
  void read_scalar_node(const Json& node, const std::string& name);
  ArgumentList read_schema_arguments(const Json& node, const Op& op);
  Argument read_sym_argument(const Json& value);

  // A value of this output, defined under its name; a list gets a value and one item node for each used name.
  ValueId define_output(const Json& output);
  void define_items(ValueId list, const Json& names, const std::shared_ptr<const Origin>& origin);
  void finish_node(Node node, const Json& json);

  // control.cpp
  void read_control(const Json& node, std::string_view name);
  void read_cond(const Json& node, const ArgumentList& arguments);
  void read_while_loop(const Json& node, const ArgumentList& arguments);
  void read_map(const Json& node, const ArgumentList& arguments);
  void read_scan(const Json& node, const ArgumentList& arguments);
  void read_region(const Json& node, std::string mode, size_t operands_from, const ArgumentList& arguments);
  void inline_body(const Json& node, size_t operands_from, const ArgumentList& arguments);
  std::vector<std::shared_ptr<const Program>> read_bodies(const Json& node);
  void add_control(const Json& node, Control control, ArgumentList arguments);

  // vmap.cpp
  void read_vmap_node(const Json& node, std::string_view name);
  void open_vmap(const ArgumentList& arguments);
  void add_batched(const Json& node, const Json::array_t& inputs);
  void remove_batched(const Json& node, const ArgumentList& arguments);
  void close_vmap(const Json& node);
  // Makes a value of the frame outside `depth` an input of the region at `depth`, under the same name.
  Argument capture(size_t depth, const std::string& name, ValueId outer, std::string dimension);

  // What is being filled: the program itself, or the body of a vmapped stretch inside of it.
  struct Frame {
    Program* program = nullptr;
    std::unordered_map<std::string, Argument> arguments;  // by name
    // Of a vmapped stretch.
    std::unique_ptr<Program> body;
    std::string randomness;
    ArgumentList operands;
    std::vector<std::string> input_dimensions, output_dimensions;  // "-" where an operand is the same for all
    std::vector<std::string> results;                              // names outside
  };
  Program& program() const { return *frames_.back().program; }

  const Json& graph_;
  OriginTable& origins_;
  std::vector<Frame> frames_;
  std::unordered_map<std::string_view, const Json*> tensor_types_, integer_types_;
  std::unordered_set<std::string_view> used_names_;
};

// Literals that do not depend on a graph.
Argument read_literal(std::string_view kind, const Json& value);
// Gives a literal the form that the schema argument has: 1 -> 1.0 for a float, 2 -> [2, 2] for int[2].
Argument fit_literal(Argument argument, const c10::Argument& expected);

}  // namespace lissome
