// Stretches that torch.func.vmap marked in the export: between "_vmap_increment_nesting" and "_vmap_decrement_nesting"
// every node computes one example, "_add_batch_dim" takes examples out of a tensor and "_remove_batch_dim" puts them
// together again. Such a stretch becomes a region node with the mode "vmap=<randomness>;<in>;<out>": for each operand
// the dimension that holds the examples, or "-" where all examples share it; for each result where they go.
#include "lissome/program/pt2/graph.h"

namespace lissome {
namespace {

std::string read_dimension(const ArgumentList& arguments, size_t position) {
  const int64_t* dimension = position < arguments.size() ? arguments[position].get<int64_t>() : nullptr;
  if (dimension == nullptr || *dimension < 0)
    throw_error(ErrorKind::invalid_input, "its batch dimension is not a number of at least 0");
  return std::to_string(*dimension);
}

}  // namespace

void GraphReader::read_vmap_node(const Json& node, std::string_view name) {
  if (name == "lazy_load_decompositions") return;
  if (name == "_add_batch_dim") return add_batched(node, list_member(node, "inputs"));
  ArgumentList arguments;
  for (const Json& input : list_member(node, "inputs")) arguments.push_back(read_argument(json_member(input, "arg")));
  if (name == "_vmap_increment_nesting") return open_vmap(arguments);
  if (frames_.size() < 2) throw_error(ErrorKind::invalid_input, "it stands outside of every vmapped stretch");
  if (name == "_remove_batch_dim") return remove_batched(node, arguments);
  if (name == "_vmap_decrement_nesting") return close_vmap(node);
  throw_error(ErrorKind::unsupported,
              "of torch.func only vmap is known; export the model with "
              "run_decompositions() to dissolve the others");
}

void GraphReader::open_vmap(const ArgumentList& arguments) {
  const std::string* randomness = arguments.size() == 2 ? arguments[1].get<std::string>() : nullptr;
  if (randomness == nullptr || (*randomness != "error" && *randomness != "same" && *randomness != "different"))
    throw_error(ErrorKind::invalid_input, "its arguments are not a size and 'error', 'same' or 'different'");
  Frame frame;
  frame.body = std::make_unique<Program>();
  frame.body->dimensions = program().dimensions;
  frame.program = frame.body.get();
  frame.randomness = *randomness;
  frames_.push_back(std::move(frame));
}

Argument GraphReader::capture(size_t depth, const std::string& name, ValueId outer, std::string dimension) {
  const Program& around = *frames_[depth - 1].program;
  Frame& frame = frames_[depth];
  ValueType type = around.value(outer).type;
  if (dimension != "-") type = read_type("as_tensor", name);
  const ValueId id = frame.body->add_input(name, std::move(type));
  frame.body->inputs.back().name = frame.body->value(id).name;
  frame.operands.push_back(outer);
  frame.input_dimensions.push_back(std::move(dimension));
  frame.arguments.emplace(name, id);
  return id;
}

// (tensor, dimension, level): one example of a tensor from around the innermost stretch.
void GraphReader::add_batched(const Json& node, const Json::array_t& inputs) {
  const auto& outputs = list_member(node, "outputs");
  if (frames_.size() < 2 || inputs.size() != 3 || outputs.size() != 1)
    throw_error(ErrorKind::invalid_input, "it is not (tensor, dimension, level) inside of a vmapped stretch");
  Frame inner = std::move(frames_.back());
  frames_.pop_back();
  const Argument outer = read_argument(json_member(inputs[0], "arg"));
  const Argument dimension = read_argument(json_member(inputs[1], "arg"));
  frames_.push_back(std::move(inner));
  const std::string& name = text_member(json_union(outputs[0], "output").value, "name");
  if (!outer.is_value() || frames_.back().arguments.contains(name))
    throw_error(ErrorKind::invalid_input, "the value ", quote(name), " is made twice or of no tensor");
  capture(frames_.size() - 1, name, outer.value(), read_dimension({dimension}, 0));
}

// (tensor, level, size, dimension): all examples of a value of the stretch, which the region gives outside.
void GraphReader::remove_batched(const Json& node, const ArgumentList& arguments) {
  const auto& outputs = list_member(node, "outputs");
  if (arguments.size() != 4 || outputs.size() != 1)
    throw_error(ErrorKind::invalid_input, "its arguments are not a tensor, a level, a size and a dimension");
  Frame& frame = frames_.back();
  frame.body->outputs.push_back({arguments[0], "output." + std::to_string(frame.results.size())});
  frame.output_dimensions.push_back(read_dimension(arguments, 3));
  frame.results.push_back(text_member(json_union(outputs[0], "output").value, "name"));
}

void GraphReader::close_vmap(const Json& node) {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  const std::string mode =
      "vmap=" + frame.randomness + ";" + join(frame.input_dimensions, ",") + ";" + join(frame.output_dimensions, ",");
  ArgumentList arguments{mode};
  arguments.insert(arguments.end(), frame.operands.begin(), frame.operands.end());
  Node region{Op::control(Control::region), std::move(arguments), {}, {}, nullptr};
  region.origin = origins_.find(find_json_member(node, "metadata"));
  if (!region.origin && !frame.body->nodes.empty()) region.origin = frame.body->nodes.front().origin;
  region.bodies.push_back(std::make_shared<const Program>(std::move(*frame.body)));
  for (const std::string& name : frame.results) {
    const ValueId id = program().add_value(read_type("as_tensor", name), name);
    define(name, id);
    region.results.push_back(id);
  }
  program().nodes.push_back(std::move(region));
}

}  // namespace lissome
