// Program -> text. parse.cpp reads it back to the same program. One statement a line (or separated by `;`), in this
// order; everything that is absent is left out:
//
//   dim batch in 1..64                                           a named dimension and its range; `in 2..` is open
//   training                                                     the program holds nodes in training form
//   call inputs "..."                                            how the caller nests inputs (outputs), as JSON
//   input %x: f32[batch, 3] as options.x                         `as` only where the name differs from the value's
//   parameter @fc.weight: f32[64, 3]                             also: buffer, constant; then strides [1, 64],
//                                                                tied @other offset 64 (elements of its storage),
//                                                                or a sparse layout
//   %3: f32[batch, 64] = aten::linear(%x, @fc.weight)  # encoder.py:88 in encoder.fc (Linear): "self.fc(x)"
//   %4: f32[2], %5: i64[2] = aten::max.dim(%3, 1)                one result per return of the schema; _ is not kept
//   %6 = lissome::cond(%p, [%x]) { ... return %a } { ... }        child programs of control ops
//   @bn.running_mean <- %4                                       writes, when the program has run
//   return %3 as logits, 7                                       `as` only where the name is not output.<position>
//
// Types: f32[8, 64], f32[...] (sizes unknown), int, int[2*batch] (of that value), float, bool, str, list, none; a value
// of unknown type has none.
// Arguments: %value, @weight, 1, 1.0, inf, nan, complex(1.0, -2.0), true, none, "text", f32 (dtype), strided (layout),
// channels_last (memory format), cuda:0 or device("odd"), [1, 2]. Those that the schema requires stand by position,
// literals for others as name=literal; defaults are left out. Names with odd characters are quoted: %"odd name".
#include <ATen/core/function_schema.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "lissome/program.h"
#include "lissome/program/syntax/literal.h"
#include "lissome/program/syntax/origin_text.h"
#include "lissome/program/text/text_words.h"

namespace lissome {
namespace {

class ProgramPrinter {
 public:
  ProgramPrinter(const Program& program, const PrintOptions& options) : program_(program), options_(options) {
    for (const Weight& weight : program.weights) weight_names_.emplace(weight.value, &weight.name);
  }

  void print_all(std::string& text, const std::string& indent) const {
    if (options_.declarations) {
      print_head(text, indent);
      for (const ProgramInput& input : program_.inputs) text += indent + print_input(input) + "\n";
      print_weights(text, indent);
    }
    for (const Node& node : program_.nodes) {
      text += indent;
      print_node(text, node, indent);
      text += "\n";
    }
    for (const StateWrite& write : program_.writes) {
      text += indent + print_value(write.target) + " <- " + print_value(write.value) + "\n";
    }
    print_outputs(text, indent);
  }

  void print_node(std::string& text, const Node& node, const std::string& indent) const {
    for (size_t i = 0; i < node.results.size(); ++i) {
      text += i == 0 ? "" : ", ";
      const ValueId id = node.results[i];
      text += id == ValueId::none ? "_" : print_value(id) + print_type(program_.value(id).type);
    }
    if (!node.results.empty()) text += " = ";
    text += node.op.name() + "(" + print_arguments(node) + ")";
    for (const auto& body : node.bodies) {
      text += " {\n";
      if (body) ProgramPrinter(*body, options_).print_all(text, indent + "  ");
      text += indent + "}";
    }
    if (!options_.origins || !node.origin) return;
    const Origin& origin = *node.origin;
    const std::string comment = write_origin({origin.source, origin.code, origin.module, origin.module_type});
    if (!comment.empty()) text += "  # " + comment;
  }

  std::string print_argument(const Argument& argument) const {
    struct Visitor {
      const ProgramPrinter& printer;
      std::string operator()(std::monostate) const { return "none"; }
      std::string operator()(ValueId id) const { return id == ValueId::none ? "_" : printer.print_value(id); }
      std::string operator()(int64_t value) const { return std::to_string(value); }
      std::string operator()(double value) const { return write_floating(value); }
      std::string operator()(bool value) const { return value ? "true" : "false"; }
      std::string operator()(const std::string& value) const { return write_string(value); }
      std::string operator()(const std::complex<double>& value) const {
        return "complex(" + write_floating(value.real()) + ", " + write_floating(value.imag()) + ")";
      }
      std::string operator()(Dtype value) const { return std::string(dtype_name(value)); }
      std::string operator()(Layout value) const { return std::string(layout_word(value)); }
      std::string operator()(MemoryFormat value) const { return std::string(memory_format_word(value)); }
      std::string operator()(const Device& value) const {
        return is_device_word(value.name) ? value.name : "device(" + write_string(value.name) + ")";
      }
      std::string operator()(const ArgumentList& items) const {
        std::string text = "[";
        for (size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : ", ") + printer.print_argument(items[i]);
        return text + "]";
      }
    };
    return std::visit(Visitor{*this}, argument.data);
  }

 private:
  std::string print_value(ValueId id) const {
    if (const auto found = weight_names_.find(id); found != weight_names_.end()) {
      return "@" + write_name(*found->second);
    }
    return "%" + write_name(program_.value(id).name);
  }

  static std::string print_type(const ValueType& type) {
    if (type.kind == ValueKind::any) return "";
    const bool is_tensor = type.kind == ValueKind::tensor;
    std::string text = ": " + std::string(is_tensor ? dtype_name(type.dtype) : value_kind_word(type.kind));
    if (!type.sized) return text + (is_tensor ? "[...]" : "");
    text += "[";
    for (size_t i = 0; i < type.sizes.size(); ++i) text += (i == 0 ? "" : ", ") + type.sizes[i].print();
    return text + "]";
  }

  void print_head(std::string& text, const std::string& indent) const {
    for (const NamedDimension& dimension : program_.dimensions) {
      text += indent + "dim " + dimension.name;
      if (dimension.minimum != 0 || dimension.maximum != INT64_MAX) {
        text += " in " + std::to_string(dimension.minimum) + "..";
        if (dimension.maximum != INT64_MAX) text += std::to_string(dimension.maximum);
      }
      text += "\n";
    }
    for (const SizeRequirement& requirement : program_.requirements) {
      text += indent + "require " + write_string(requirement.text) + "\n";
    }
    if (program_.training) text += indent + "training\n";
    const CallTree& tree = program_.call_tree;
    if (!options_.origins) return;
    if (!tree.inputs.empty()) text += indent + "call inputs " + write_string(tree.inputs) + "\n";
    if (!tree.outputs.empty()) text += indent + "call outputs " + write_string(tree.outputs) + "\n";
  }

  std::string print_input(const ProgramInput& input) const {
    const Value& value = program_.value(input.value);
    std::string text = "input %" + write_name(value.name) + print_type(value.type);
    if (input.name != value.name) text += " as " + write_word(input.name);
    return text;
  }

  void print_weights(std::string& text, const std::string& indent) const {
    std::map<const void*, const Weight*> by_storage;
    for (const Weight& weight : program_.weights) {
      text += indent + std::string(weight_role_word(weight.role)) + " @" + write_name(weight.name);
      const at::Tensor& tensor = weight.tensor;
      const std::string use = std::string(weight.trains ? "" : " frozen") + (weight.persistent ? "" : " temporary");
      if (!tensor.defined()) {
        text += print_type(program_.value(weight.value).type) + use + "\n";
        continue;
      }
      ValueType type{ValueKind::tensor, dtype_of(tensor.scalar_type()), true, {}};
      for (const int64_t size : tensor.sizes()) type.sizes.emplace_back(size);
      text += print_type(type) + use;
      if (tensor.layout() != at::kStrided) {
        text += " " + std::string(layout_word(layout_of(tensor.layout()))) + "\n";
        continue;
      }
      if (!tensor.is_contiguous()) text += " strides " + format_sizes(tensor.strides());
      if (const void* storage = tensor.storage().data(); storage != nullptr) {
        const auto [first, is_first] = by_storage.emplace(storage, &weight);
        if (!is_first && first->second->tensor.scalar_type() == tensor.scalar_type()) {
          text += " tied @" + write_name(first->second->name);
        }
        if (tensor.storage_offset() != 0) text += " offset " + std::to_string(tensor.storage_offset());
      }
      text += "\n";
    }
  }

  void print_outputs(std::string& text, const std::string& indent) const {
    text += indent + "return";
    size_t line_start = text.size() - 6 - indent.size();
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const ProgramOutput& output = program_.outputs[i];
      std::string item = print_argument(output.value);
      if (output.name != usual_output_name(i)) item += " as " + write_word(output.name);
      if (i > 0) text += ",";
      if (i > 0 && text.size() + item.size() - line_start > 110) {
        text += "\n" + indent + "      ";
        line_start = text.size() - 6 - indent.size();
      }
      text += " " + item;
    }
    text += "\n";
  }

  std::string print_arguments(const Node& node) const {
    std::string text;
    const auto add = [&text](const std::string& argument) { text += (text.empty() ? "" : ", ") + argument; };
    if (!node.op.has_schema()) {
      for (const Argument& argument : node.arguments) add(print_argument(argument));
      return text;
    }
    const auto& expected = node.op.schema().arguments();
    bool by_position = true;
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const Argument& argument = node.arguments[i];
      if (i >= expected.size()) {
        add(print_argument(argument));
        continue;
      }
      const auto usual = default_argument(node.op, i);
      if (usual && same_literal(*usual, argument)) {
        by_position = false;
        continue;
      }
      by_position = by_position && !expected[i].kwarg_only() && (!usual || argument.is_value());
      add(by_position ? print_argument(argument) : expected[i].name() + "=" + print_argument(argument));
    }
    return text;
  }

  const Program& program_;
  const PrintOptions options_;
  std::unordered_map<ValueId, const std::string*> weight_names_;
};

}  // namespace

std::string print_program(const Program& program, const PrintOptions& options) {
  std::string text;
  ProgramPrinter(program, options).print_all(text, "");
  return text;
}

std::string print_node(const Program& program, const Node& node) {
  std::string text;
  ProgramPrinter(program, {}).print_node(text, node, "");
  return text;
}

std::string print_argument(const Program& program, const Argument& argument) {
  return ProgramPrinter(program, {}).print_argument(argument);
}

std::string describe_place(std::string name, const Origin* origin) {
  if (origin != nullptr && !origin->module.empty()) name += " of " + origin->module;
  if (origin != nullptr && !origin->source.empty()) name += " (" + origin->source + ")";
  return name;
}

std::string describe_node(const Node& node) { return describe_place(node.op.name(), node.origin.get()); }

}  // namespace lissome
