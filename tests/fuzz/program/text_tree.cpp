#include "tests/fuzz/program/text_tree.h"

#include <cstdlib>

#include "lissome/base.h"
#include "lissome/program/syntax/literal.h"

namespace lissome {
namespace {

std::string print_type(const TextType& type) {
  std::string text = ": " + type.word;
  if (!type.has_brackets) return text;
  return text + "[" + (type.sized ? join(type.sizes, ", ") : "...") + "]";
}

std::string print_list(const std::vector<TextArgument>& items);

std::string print_bare(const TextArgument& argument) {
  using Kind = TextArgument::Kind;
  const std::string type = argument.type ? print_type(*argument.type) : "";
  switch (argument.kind) {
    case Kind::value: return "%" + write_name(argument.text) + type;
    case Kind::weight: return "@" + write_name(argument.text) + type;
    case Kind::integer: return std::to_string(argument.integer);
    case Kind::floating: return write_floating(argument.floating);
    case Kind::string: return write_string(argument.text);
    case Kind::word: return argument.text;
    case Kind::device: return "device(" + write_string(argument.text) + ")";
    case Kind::list: return "[" + print_list(argument.items) + "]";
    case Kind::complex:
      return "complex(" + write_floating(argument.floating) + ", " + write_floating(argument.imaginary) + ")";
  }
  return "none";
}

std::string print_argument(const TextArgument& argument) {
  return (argument.keyword.empty() ? "" : argument.keyword + "=") + print_bare(argument);
}

std::string print_list(const std::vector<TextArgument>& items) {
  std::vector<std::string> texts;
  for (const TextArgument& item : items) texts.push_back(print_argument(item));
  return join(texts, ", ");
}

std::string print_weight(const TextWeight& weight) {
  std::string text = weight.role + " @" + write_name(weight.name) + print_type(weight.type);
  if (weight.strides) {
    text += " strides [";
    for (const int64_t stride : *weight.strides) text += std::to_string(stride) + ", ";
    text += "]";
  }
  if (!weight.tied.empty()) text += " tied @" + write_name(weight.tied);
  if (weight.offset != 0) text += " offset " + std::to_string(weight.offset);
  if (!weight.layout.empty()) text += " " + weight.layout;
  if (weight.fill) text += " = " + print_argument(*weight.fill);
  return text + "\n";
}

std::string print_node(const TextNode& node) {
  std::string text;
  for (const TextResult& result : node.results) {
    if (!text.empty()) text += ", ";
    text += result.name.empty() ? "_" : "%" + write_name(result.name) + (result.type ? print_type(*result.type) : "");
  }
  if (!text.empty()) text += " = ";
  text += node.op + "(" + print_list(node.arguments) + ")";
  for (const TextProgram& body : node.bodies) text += " {\n" + print_tree(body) + "}";
  return text + "\n";
}

std::string print_head(const TextProgram& program) {
  std::string text;
  for (const TextDimension& dimension : program.dimensions) {
    text += "dim " + dimension.name;
    if (dimension.minimum) text += " in " + std::to_string(*dimension.minimum) + "..";
    if (dimension.minimum && dimension.maximum) text += std::to_string(*dimension.maximum);
    text += "\n";
  }
  for (const TextRequirement& requirement : program.requirements) {
    text += "require " + write_string(requirement.text) + "\n";
  }
  if (program.training) text += "training\n";
  if (!program.call_inputs.empty()) text += "call inputs " + write_string(program.call_inputs) + "\n";
  if (!program.call_outputs.empty()) text += "call outputs " + write_string(program.call_outputs) + "\n";
  return text;
}

}  // namespace

std::string print_tree(const TextProgram& program) {
  std::string text = print_head(program);
  for (const TextInput& input : program.inputs) {
    text += "input %" + write_name(input.value) + (input.type.word.empty() ? "" : print_type(input.type));
    text += (input.name ? " as " + write_word(*input.name) : "") + "\n";
  }
  for (const TextWeight& weight : program.weights) text += print_weight(weight);
  for (const TextNode& node : program.nodes) text += print_node(node);
  for (const TextWrite& write : program.writes)
    text += print_argument(write.target) + " <- " + print_argument(write.value) + "\n";
  if (!program.has_return) return text;
  std::vector<std::string> outputs;
  for (const TextOutput& output : program.outputs)
    outputs.push_back(print_argument(output.value) + (output.name ? " as " + write_word(*output.name) : ""));
  return text + "return " + join(outputs, ", ") + "\n";
}

uint64_t read_data_number(std::string_view text) {
  constexpr std::string_view kMark = "# data ";
  if (!text.starts_with(kMark)) return 0;
  return std::strtoull(std::string(text.substr(kMark.size(), 20)).c_str(), nullptr, 10);
}

}  // namespace lissome
