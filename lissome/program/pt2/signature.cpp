// Inputs, weights, outputs and state of an exported program; see signature.h.
#include "lissome/program/pt2/signature.h"

#include <algorithm>

#include "lissome/program/pt2/call_tree.h"

namespace lissome {
namespace {

const Json& graph_module(const Pt2Archive& archive) { return json_member(archive.model, "graph_module"); }

const Json::array_t& list_specs(const Pt2Archive& archive, std::string_view key) {
  return list_member(json_member(graph_module(archive), "signature"), key);
}

// The entry of the outermost module: "" in module_call_graph.
const Json* find_root_call(const Pt2Archive& archive) {
  const Json* entries = find_json_member(graph_module(archive), "module_call_graph");
  if (entries == nullptr) return nullptr;
  for (const Json& entry : json_list(*entries, "module_call_graph")) {
    if (text_member(entry, "fqn").empty()) return find_json_member(entry, "signature");
  }
  return nullptr;
}

void add_names(const Dimension& size, std::vector<std::string>& names) {
  for (std::string& name : size.names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
}

void read_range(const Json& range, NamedDimension& dimension) {
  if (const Json* minimum = find_json_member(range, "min_val"))
    dimension.minimum = std::max<int64_t>(0, json_integer(*minimum, "min_val"));
  if (const Json* maximum = find_json_member(range, "max_val")) dimension.maximum = json_integer(*maximum, "max_val");
  if (dimension.minimum > dimension.maximum)
    throw_error(ErrorKind::invalid_input, "the range of ", quote(dimension.name), " is empty: ", dimension.minimum,
                " to ", dimension.maximum);
}

}  // namespace

void read_dimensions(const Pt2Archive& archive, Program& program) {
  OriginTable origins;
  Program scratch;
  const GraphReader graph(json_member(graph_module(archive), "graph"), scratch, origins);
  std::vector<std::string> names;
  for (const Json& spec : list_specs(archive, "input_specs")) {
    const auto [kind, inner] = json_union(spec, "input spec");
    if (kind != "user_input") continue;
    const auto [tag, argument] = json_union(json_member(inner, "arg"), "input");
    if (tag == "as_tensor") {
      for (const Dimension& size : graph.read_sizes(text_member(argument, "name"))) add_names(size, names);
    }
  }
  const Json* ranges = find_json_member(archive.model, "range_constraints");
  for (std::string& name : names) {
    NamedDimension dimension{std::move(name), 0, INT64_MAX};
    const Json* range = ranges != nullptr ? find_json_member(*ranges, dimension.name) : nullptr;
    if (range != nullptr) read_range(*range, dimension);
    program.dimensions.push_back(std::move(dimension));
  }
}

SignatureReader::SignatureReader(const Pt2Archive& archive, Program& program, GraphReader& graph, Pt2Tensors& tensors)
    : archive_(archive),
      program_(program),
      graph_(graph),
      tensors_(tensors),
      call_(find_root_call(archive)),
      input_names_(name_call_inputs(call_)),
      output_names_(name_call_outputs(call_)) {}

std::string SignatureReader::next_input_name(const std::string& fallback) {
  const size_t place = next_input_++;
  const std::string& name = place < input_names_.size() ? input_names_[place] : fallback;
  return name.empty() ? "input." + std::to_string(place) : name;
}

void SignatureReader::read_inputs() {
  const auto& specs = list_specs(archive_, "input_specs");
  const auto& placeholders = graph_.inputs();
  if (specs.size() != placeholders.size())
    throw_error(ErrorKind::invalid_input, "the signature has ", specs.size(), " inputs, the graph ",
                placeholders.size());
  for (size_t i = 0; i < specs.size(); ++i) read_input(specs[i], placeholders[i]);
  program_.call_tree.inputs = print_call_tree(call_, "in_spec", input_leaves_);
}

void SignatureReader::read_input(const Json& spec, const Json& placeholder) {
  const auto [kind, inner] = json_union(spec, "input spec");
  if (kind == "user_input") return read_user_input(json_member(inner, "arg"));
  if (kind == "constant_input") return read_constant_input(inner);
  if (kind == "custom_obj" || kind == "token")
    throw_error(ErrorKind::unsupported, "the model takes ", kind == "token" ? "a token" : "the custom object ",
                kind == "token" ? "" : quote(text_member(inner, "custom_obj_name")),
                ", whose code is not in the file. Export the model without it");
  const std::string& name = text_member(json_member(inner, "arg"), "name");
  const auto [tag, value] = json_union(placeholder, "input");
  if (tag != "as_tensor" || text_member(value, "name") != name)
    throw_error(ErrorKind::invalid_input, "the signature calls an input ", quote(name), ", the graph has ",
                print_json(placeholder).substr(0, 200), " in its place");
  if (kind == "parameter") return read_weight(name, text_member(inner, "parameter_name"), WeightRole::parameter);
  if (kind == "buffer") {
    const Json* persistent = find_json_member(inner, "persistent");
    return read_weight(name, text_member(inner, "buffer_name"), WeightRole::buffer,
                       persistent == nullptr || json_boolean(*persistent, "persistent"));
  }
  if (kind == "tensor_constant")
    return read_weight(name, text_member(inner, "tensor_constant_name"), WeightRole::constant);
  throw_error(ErrorKind::unsupported, "inputs of kind ", quote(kind), " are unknown");
}

void SignatureReader::read_weight(const std::string& value_name, const std::string& name, WeightRole role,
                                  bool persistent) {
  const Weight* known = nullptr;
  for (const Weight& weight : program_.weights) {
    if (weight.name == name) known = &weight;
  }
  // The same name twice is the same tensor.
  const ValueId id = known != nullptr ? known->value : program_.add_weight(name, tensors_.read(name), role);
  if (known == nullptr) {
    program_.weights.back().persistent = persistent;
    program_.weights.back().trains = role != WeightRole::parameter || tensors_.trains(name);
  }
  graph_.define(value_name, id);
}

void SignatureReader::read_user_input(const Json& argument) {
  const auto [kind, value] = json_union(argument, "input");
  std::string placeholder;
  if (kind == "as_tensor") {
    placeholder = text_member(value, "name");
  } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    const auto [tag, inner] = json_union(value, kind);
    placeholder = json_text(inner, tag);
  } else {
    read_literal(kind, value);  // refuses custom objects by name
    throw_error(ErrorKind::invalid_input, "a user input of kind ", quote(kind), " has no name");
  }
  const std::string name = next_input_name(placeholder);
  const ValueId id = program_.add_input(name, graph_.read_type(kind, placeholder));
  program_.inputs.back().name = program_.value(id).name;
  input_leaves_.push_back(program_.value(id).name);
  graph_.define(placeholder, id);
}

// An argument whose value the export froze: the caller may still give it, the program does not read it.
void SignatureReader::read_constant_input(const Json& spec) {
  const std::string& placeholder = text_member(spec, "name");
  next_input_name(placeholder);
  const auto [kind, value] = json_union(json_member(spec, "value"), "constant input");
  input_leaves_.push_back(Json{{"fixed", kind == "as_none" ? Json() : value}});
  graph_.define(placeholder, read_literal(kind, value));
}

void SignatureReader::read_outputs() {
  const auto& specs = list_specs(archive_, "output_specs");
  const auto& results = graph_.outputs();
  if (specs.size() != results.size())
    throw_error(ErrorKind::invalid_input, "the signature has ", specs.size(), " outputs, the graph ", results.size());
  for (size_t i = 0; i < specs.size(); ++i) read_output(specs[i], results[i]);
  program_.call_tree.outputs = print_call_tree(call_, "out_spec", output_leaves_);
}

void SignatureReader::read_output(const Json& spec, const Json& result) {
  const auto [kind, inner] = json_union(spec, "output spec");
  if (kind == "user_output") {
    const size_t place = next_output_++;
    const std::string fallback = "output." + std::to_string(place);
    return add_output(result, place < output_names_.size() ? output_names_[place] : fallback);
  }
  if (kind == "loss_output") {
    ++next_output_;
    return add_output(result, "loss");
  }
  if (kind == "buffer_mutation") return add_write(inner, "buffer_name");
  if (kind == "parameter_mutation") return add_write(inner, "parameter_name");
  if (kind == "user_input_mutation") return add_write(inner, "user_input_name");
  throw_error(ErrorKind::unsupported, "outputs of kind ", quote(kind), " are not supported",
              kind.starts_with("gradient") ? ": export the forward pass alone, lissome takes gradients itself" : "");
}

std::string SignatureReader::make_unique(const std::string& name) {
  std::string candidate = name;
  for (int& suffix = suffixes_[name]; !names_.insert(candidate).second;)
    candidate = name + "_" + std::to_string(++suffix);
  return candidate;
}

void SignatureReader::add_output(const Json& argument, std::string name) {
  name = make_unique(std::move(name));
  const auto [kind, value] = json_union(argument, "output");
  // A text is no value of a plan: what the module returns in its place stands in the tree.
  output_leaves_.push_back(kind == "as_string" ? Json{{"fixed", value}} : Json(name));
  program_.outputs.push_back({graph_.read_argument(argument), std::move(name)});
}

// Functional exports name what a write stores; the targets are buffers by their own name, inputs by the graph's.
void SignatureReader::add_write(const Json& spec, std::string_view target_key) {
  const std::string& target = text_member(spec, target_key);
  const Argument& value = graph_.resolve(text_member(json_member(spec, "arg"), "name"));
  ValueId id = ValueId::none;
  if (target_key == "user_input_name") {
    id = graph_.resolve(target).value();
  } else if (const Weight* weight = program_.find_weight(target)) {
    id = weight->value;
  }
  if (id == ValueId::none || !value.is_value())
    throw_error(ErrorKind::invalid_input, "the state ", quote(target), " that the model writes is none of its own");
  if (id != value.value()) program_.writes.push_back({id, value.value()});
}

}  // namespace lissome
