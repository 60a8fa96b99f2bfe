// Higher-order ops: their graphs become child programs of control nodes, or are put in place where the op adds nothing
// to what its graph computes. Arguments of these ops have no names in the file: they go by position.
#include <algorithm>

#include "lissome/program/pt2/graph.h"

namespace lissome {
namespace {

bool is_graph(const Json& input) { return json_union(json_member(input, "arg"), "argument").kind == "as_graph"; }

[[noreturn]] void refuse_form(std::string_view wanted) {
  throw_error(ErrorKind::invalid_input, "its arguments are not ", wanted);
}

const ArgumentList& list_at(const ArgumentList& arguments, size_t position, std::string_view wanted) {
  if (position >= arguments.size() || !arguments[position].is_list()) refuse_form(wanted);
  return arguments[position].list();
}

void append(ArgumentList& to, const ArgumentList& from) { to.insert(to.end(), from.begin(), from.end()); }

int64_t count_of(const ArgumentList& list) { return static_cast<int64_t>(list.size()); }

// "autocast=cpu,bf16,1": device, element type, enabled.
std::string print_autocast(const ArgumentList& arguments) {
  const std::string* device = arguments[0].get<std::string>();
  const bool* enabled = arguments[2].get<bool>();
  if (device == nullptr || enabled == nullptr) refuse_form("device, dtype, enabled, cache, graph, values");
  const Dtype* dtype = arguments[1].get<Dtype>();
  const Dtype fallback = *device == "cpu" ? Dtype::bf16 : Dtype::f16;
  return "autocast=" + *device + "," + std::string(dtype_name(dtype != nullptr ? *dtype : fallback)) + "," +
         (*enabled ? "1" : "0");
}

}  // namespace

void GraphReader::read_control(const Json& node, std::string_view name) {
  // Everything but the graphs themselves.
  ArgumentList arguments;
  for (const Json& input : list_member(node, "inputs")) {
    if (!is_graph(input)) arguments.push_back(read_argument(json_member(input, "arg")));
  }
  if (name == "cond") return read_cond(node, arguments);
  if (name == "while_loop") return read_while_loop(node, arguments);
  if (name == "map_impl") return read_map(node, arguments);
  if (name == "scan") return read_scan(node, arguments);
  if (name == "wrap_with_set_grad_enabled") {
    const bool* enabled = arguments.empty() ? nullptr : arguments[0].get<bool>();
    if (enabled == nullptr) refuse_form("enabled, graph, values");
    return read_region(node, *enabled ? "grad=1" : "grad=0", 1, arguments);
  }
  if (name == "wrap_with_autocast") {
    if (arguments.size() < 4) refuse_form("device, dtype, enabled, cache, graph, values");
    return read_region(node, print_autocast(arguments), 4, arguments);
  }
  if (name == "invoke_subgraph") return inline_body(node, 1, arguments);
  if (name == "wrap" || name == "wrap_activation_checkpoint" || name == "tag_activation_checkpoint")
    return inline_body(node, 0, arguments);
  if (name == "strict_mode") return inline_body(node, 0, list_at(arguments, 0, "graph, values"));
  throw_error(ErrorKind::unsupported, "the higher-order op ", quote(name),
              " is unknown; cond, while_loop, map, scan, grad-mode and autocast regions are known");
}

Program GraphReader::read_body(const Json& graph) {
  Program body;
  body.dimensions = program().dimensions;
  GraphReader reader(graph, body, origins_);
  for (const Json& input : reader.inputs()) {
    const auto [kind, value] = json_union(input, "input");
    std::string name;
    if (kind == "as_tensor") {
      name = text_member(value, "name");
    } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
      const auto [tag, inner] = json_union(value, kind);
      name = json_text(inner, tag);
    } else if (kind == "as_custom_obj") {
      read_literal(kind, value);  // refused by name
    }
    // A literal in this place was frozen into the body: its input is there, nothing reads it.
    const ValueId id = body.add_input(name.empty() ? "unused" : name, reader.read_type(kind, name));
    body.inputs.back().name = body.value(id).name;
    if (!name.empty()) reader.define(name, id);
  }
  reader.read_nodes();
  for (const Json& output : reader.outputs()) {
    body.outputs.push_back({reader.read_argument(output), "output." + std::to_string(body.outputs.size())});
  }
  return body;
}

std::vector<std::shared_ptr<const Program>> GraphReader::read_bodies(const Json& node) {
  std::vector<std::shared_ptr<const Program>> bodies;
  for (const Json& input : list_member(node, "inputs")) {
    if (!is_graph(input)) continue;
    const Json& graph = json_member(json_member(json_member(input, "arg"), "as_graph"), "graph");
    bodies.push_back(std::make_shared<const Program>(read_body(graph)));
  }
  return bodies;
}

void GraphReader::add_control(const Json& node, Control control, ArgumentList arguments) {
  Node made{Op::control(control), std::move(arguments), {}, read_bodies(node), nullptr};
  const size_t wanted = control == Control::cond || control == Control::while_loop ? 2 : 1;
  if (made.bodies.size() != wanted)
    throw_error(ErrorKind::invalid_input, made.op.name(), " has ", made.bodies.size(), " graphs, ", wanted,
                " are needed");
  const size_t results = list_member(node, "outputs").size();
  const Program& body = *made.bodies.back();
  if (body.outputs.size() != results)
    throw_error(ErrorKind::invalid_input, made.op.name(), " has ", results, " results, its graph has ",
                body.outputs.size());
  finish_node(std::move(made), node);
}

void GraphReader::read_cond(const Json& node, const ArgumentList& arguments) {
  const std::string_view form = "a condition, two graphs and a list of values";
  if (arguments.size() != 2) refuse_form(form);
  ArgumentList flat{arguments[0]};
  append(flat, list_at(arguments, 1, form));
  add_control(node, Control::cond, std::move(flat));
}

void GraphReader::read_while_loop(const Json& node, const ArgumentList& arguments) {
  const std::string_view form = "two graphs, carried values and further values";
  const ArgumentList& carried = list_at(arguments, 0, form);
  ArgumentList flat{count_of(carried)};
  append(flat, carried);
  if (arguments.size() > 1) append(flat, list_at(arguments, 1, form));
  add_control(node, Control::while_loop, std::move(flat));
}

void GraphReader::read_map(const Json& node, const ArgumentList& arguments) {
  const std::string_view form = "a graph, mapped values and further values";
  const ArgumentList& mapped = list_at(arguments, 0, form);
  ArgumentList flat{count_of(mapped)};
  append(flat, mapped);
  if (arguments.size() > 1) append(flat, list_at(arguments, 1, form));
  add_control(node, Control::map, std::move(flat));
}

// Scans go forward along the first dimension: torch writes flips and transposes around the others.
void GraphReader::read_scan(const Json& node, const ArgumentList& arguments) {
  const std::string_view form = "a graph, carried, scanned and further values";
  const ArgumentList& carried = list_at(arguments, 0, form);
  const ArgumentList& scanned = list_at(arguments, 1, form);
  ArgumentList flat{count_of(carried), count_of(scanned), false};
  append(flat, carried);
  append(flat, scanned);
  if (arguments.size() > 2) append(flat, list_at(arguments, 2, form));
  add_control(node, Control::scan, std::move(flat));
}

void GraphReader::read_region(const Json& node, std::string mode, size_t operands_from, const ArgumentList& arguments) {
  ArgumentList flat{std::move(mode)};
  flat.insert(flat.end(), arguments.begin() + static_cast<std::ptrdiff_t>(operands_from), arguments.end());
  add_control(node, Control::region, std::move(flat));
}

// The body's nodes in place of the call: its inputs are the operands.
void GraphReader::inline_body(const Json& node, size_t operands_from, const ArgumentList& arguments) {
  const auto bodies = read_bodies(node);
  const auto& outputs = list_member(node, "outputs");
  if (bodies.size() != 1 || arguments.size() < operands_from ||
      bodies[0]->inputs.size() != arguments.size() - operands_from || bodies[0]->outputs.size() != outputs.size())
    refuse_form("one graph and a value for each of its inputs");
  const Program& body = *bodies[0];
  std::vector<Argument> mapped(body.values.size());
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    mapped[static_cast<size_t>(body.inputs[i].value)] = arguments[operands_from + i];
  }
  const auto find_mapped = [&](ValueId id) { return mapped[static_cast<size_t>(id)]; };
  for (const Node& inner : body.nodes) {
    Node copy = inner;
    for (Argument& argument : copy.arguments) argument = map_values(argument, find_mapped);
    for (ValueId& result : copy.results) {
      const Value& value = body.value(result);
      const ValueId fresh = program().add_value(value.type, value.name);
      mapped[static_cast<size_t>(result)] = fresh;
      result = fresh;
    }
    program().nodes.push_back(std::move(copy));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto [kind, value] = json_union(outputs[i], "output");
    if (kind == "as_none") continue;
    const Json& named = kind == "as_tensor" ? json_member(value, "name") : json_union(value, kind).value;
    define(json_text(named, "name"), map_values(body.outputs[i].value, find_mapped));
  }
}

}  // namespace lissome
