// Inside of interpret(): runs programs over dispatcher values, child programs included. Shared by interpret.cpp (plain
// nodes), interpret_control.cpp (control nodes) and bind.cpp.
#pragma once

#include <map>
#include <vector>

#include "lissome/program.h"

namespace lissome {

using IValues = std::vector<c10::IValue>;

class Interpreter {
 public:
  explicit Interpreter(const InterpretOptions& options) : options_(options) {}

  // Everything from inputs that fit to outputs and, for the outermost program, written state.
  IValues run_outermost(const Program& program, IValues inputs);
  IValues run_body(const Program& program, IValues inputs);
  // One node; `arguments` in schema form or convertible to it. Errors name the op, module path and source line.
  IValues run_node(const Node& node, IValues arguments);

 private:
  using Environment = IValues;  // by ValueId

  const std::vector<std::vector<ValueId>>& find_deaths(const Program& program);
  Environment make_environment(const Program& program, IValues inputs);
  IValues take_arguments(const Node& node, Environment& environment, const std::vector<ValueId>& dying) const;
  void run_nodes(const Program& program, Environment& environment, bool outermost);
  c10::IValue place(const Argument& literal) const;

  // interpret_control.cpp
  IValues run_control(const Node& node, IValues arguments);
  IValues run_cond(const Node& node, IValues arguments);
  IValues run_while_loop(const Node& node, IValues arguments);
  IValues run_map(const Node& node, IValues arguments);
  IValues run_scan(const Node& node, IValues arguments);
  IValues run_region(const Node& node, IValues arguments);

  const InterpretOptions& options_;
  // Per program: the values that die after each node, so that loops compute them once.
  std::map<const Program*, std::vector<std::vector<ValueId>>> deaths_;
};

}  // namespace lissome
