// The rules that a program keeps at each stage of its way, from loose to strict; see Stage in the face. A broken rule
// is our own fault (importers refuse bad files themselves), so the error is internal and names the node.
#include <ATen/core/function_schema.h>

#include <unordered_set>

#include "lissome/program.h"
#include "lissome/program/convert.h"
#include "lissome/program/interpret/interpreter.h"

namespace lissome {
namespace {

class Verifier {
 public:
  Verifier(const Program& program, Stage stage)
      : program_(program), stage_(stage), defined_(program.values.size(), false) {}

  void verify() {
    check_names();
    for (const ProgramInput& input : program_.inputs) define(input.value, "input '" + input.name + "'");
    for (const Weight& weight : program_.weights) check_weight(weight);
    for (const Node& node : program_.nodes) check_node(node);
    for (const ProgramOutput& output : program_.outputs) {
      for_each_value(output.value, [&](ValueId id) { check_defined(id, "output '" + output.name + "'"); });
    }
    for (const StateWrite& write : program_.writes) check_write(write);
    if (stage_ >= Stage::optimized) check_dead_nodes();
  }

 private:
  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw_error(ErrorKind::internal, "the program is broken: ", parts...);
  }

  std::string name_of(ValueId id) const { return "%" + program_.value(id).name; }

  void check_exists(ValueId id, std::string_view where) const {
    if (id == ValueId::none || static_cast<size_t>(id) >= defined_.size()) {
      fail(where, " refers to value ", static_cast<int>(id), " of ", defined_.size());
    }
  }

  void check_defined(ValueId id, std::string_view where) const {
    check_exists(id, where);
    if (!defined_[static_cast<size_t>(id)]) fail(where, " reads ", name_of(id), " before it is made");
  }

  void define(ValueId id, std::string_view where) {
    check_exists(id, where);
    if (defined_[static_cast<size_t>(id)]) fail(where, " makes ", name_of(id), " a second time");
    defined_[static_cast<size_t>(id)] = true;
  }

  void check_names() const {
    std::unordered_set<std::string_view> names;
    for (const Value& value : program_.values) {
      if (value.name.empty()) fail("a value has no name");
      if (!names.insert(value.name).second) fail("two values are named %", value.name);
    }
    std::unordered_set<std::string_view> weights;
    for (const Weight& weight : program_.weights) {
      if (!weights.insert(weight.name).second) fail("two weights are named '", weight.name, "'");
    }
  }

  void check_weight(const Weight& weight) {
    define(weight.value, "weight '" + weight.name + "'");
    if (!weight.tensor.defined()) fail("weight '", weight.name, "' has no tensor");
    const ValueType& type = program_.value(weight.value).type;
    if (type.kind != ValueKind::tensor || type.dtype != dtype_of(weight.tensor.scalar_type())) {
      fail("weight '", weight.name, "' holds ", dtype_name(dtype_of(weight.tensor.scalar_type())),
           " and its value says ", dtype_name(type.dtype));
    }
    bool fits = !type.sized || type.sizes.size() == static_cast<size_t>(weight.tensor.dim());
    for (size_t i = 0; fits && type.sized && i < type.sizes.size(); ++i) {
      fits = type.sizes[i].constant() == weight.tensor.size(static_cast<int64_t>(i));
    }
    if (!fits) fail("weight '", weight.name, "' has sizes ", format_sizes(weight.tensor.sizes()), ", its value others");
  }

  void check_node(const Node& node) {
    if (!node.op) fail("a node has no op");
    const std::string where = describe_node(node);
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id) { check_defined(id, where); });
    }
    if (node.op.has_schema()) {
      check_schema(node, where);
    } else {
      check_control(node, where);
    }
    if (stage_ >= Stage::compressed) check_quantized(node, where);
    for (const ValueId result : node.results) {
      if (result != ValueId::none) define(result, where);
    }
  }

  void check_schema(const Node& node, const std::string& where) const {
    const c10::FunctionSchema& schema = node.op.schema();
    if (node.arguments.size() != schema.arguments().size()) {
      fail(where, " has ", node.arguments.size(), " arguments, its schema ", schema.arguments().size());
    }
    if (node.results.size() != schema.returns().size()) {
      fail(where, " has ", node.results.size(), " results, its schema ", schema.returns().size());
    }
    if (!node.bodies.empty()) fail(where, " has bodies, which only control nodes have");
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const std::string misfit = find_misfit(program_, node.arguments[i], schema.arguments()[i]);
      if (!misfit.empty()) fail(where, ": argument '", schema.arguments()[i].name(), "' ", misfit);
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i] == ValueId::none) continue;
      check_exists(node.results[i], where);
      const std::string misfit = find_result_misfit(program_.value(node.results[i]).type, schema.returns()[i]);
      if (!misfit.empty()) fail(where, ": result ", name_of(node.results[i]), " ", misfit);
    }
  }

  struct ControlShape {
    size_t bodies = 1;
    size_t literals = 1;  // arguments before the operands
  };

  static ControlShape shape_of(Control control) {
    switch (control) {
      case Control::cond:
      case Control::while_loop: return {2, 1};
      case Control::scan: return {1, 3};
      default: return {1, 1};
    }
  }

  void check_control(const Node& node, const std::string& where) const {
    const ControlShape shape = shape_of(node.op.control());
    if (node.bodies.size() != shape.bodies) fail(where, " has ", node.bodies.size(), " bodies");
    if (node.arguments.size() < shape.literals) fail(where, " lacks its first arguments");
    for (size_t i = 0; i < node.bodies.size(); ++i) {
      const Program& body = *node.bodies[i];
      Verifier(body, stage_).verify();
      if (body.inputs.size() != node.arguments.size() - shape.literals) {
        fail(where, ": body ", i, " takes ", body.inputs.size(), " inputs, the node gives ",
             node.arguments.size() - shape.literals);
      }
      if (!body.writes.empty()) fail(where, ": body ", i, " writes state at its end");
      const bool condition = node.op.control() == Control::while_loop && i == 0;
      const size_t expected = condition ? 1 : node.results.size();
      if (body.outputs.size() != expected) {
        fail(where, ": body ", i, " gives ", body.outputs.size(), " values, the node has ", expected);
      }
    }
    if (stage_ == Stage::ready && node.op.control() == Control::region) {
      const std::string* mode = node.arguments[0].get<std::string>();
      if (mode != nullptr && mode->starts_with("autocast")) fail(where, " still leaves casts to autocast");
    }
  }

  // u8 activations, s8 weights, f32 scales, as far as the types are known.
  void check_quantized(const Node& node, const std::string& where) const {
    const std::string& name = node.op.name();
    if (!name.starts_with("lissome::") || name.find("_int8") == std::string::npos) return;
    const auto expect = [&](std::string_view argument, Dtype dtype) {
      const int index = node.op.argument_index(argument);
      if (index < 0 || !node.arguments[static_cast<size_t>(index)].is_value()) return;
      const ValueType& type = program_.value(node.arguments[static_cast<size_t>(index)].value()).type;
      if (type.kind == ValueKind::tensor && type.dtype != dtype) {
        fail(where, ": '", argument, "' is ", dtype_name(type.dtype), ", quantized data there are ", dtype_name(dtype));
      }
    };
    if (name.find("dynamic") == std::string::npos) expect("x", Dtype::u8);
    expect("weight", Dtype::i8);
    expect("weight_scales", Dtype::f32);
  }

  void check_write(const StateWrite& write) const {
    check_defined(write.value, "a state write");
    check_exists(write.target, "a state write");
    bool is_state = program_.find_weight(write.target) != nullptr;
    for (const ProgramInput& input : program_.inputs) is_state |= input.value == write.target;
    if (!is_state) fail("the write to ", name_of(write.target), " has neither a weight nor an input as its target");
    const ValueType& target = program_.value(write.target).type;
    const ValueType& value = program_.value(write.value).type;
    if (target.kind == ValueKind::tensor && value.kind == ValueKind::tensor && target.dtype != value.dtype) {
      fail("the write to ", name_of(write.target), " stores ", dtype_name(value.dtype), " in ",
           dtype_name(target.dtype));
    }
    for (const StateWrite& other : program_.writes) {
      if (&other != &write && other.target == write.target) fail(name_of(write.target), " is written twice");
    }
  }

  void check_dead_nodes() const {
    const Uses uses = find_uses(program_);
    for (const Node& node : program_.nodes) {
      bool used = false;
      for (const ValueId result : node.results) used |= result != ValueId::none && uses.count(result) > 0;
      if (!used && is_pure(program_, node)) fail(describe_node(node), " is dead: nothing reads what it makes");
    }
  }

  const Program& program_;
  Stage stage_;
  std::vector<bool> defined_;
};

}  // namespace

void verify_program(const Program& program, Stage stage) {
  register_ops();
  Verifier(program, stage).verify();
}

}  // namespace lissome
