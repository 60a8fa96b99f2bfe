// Text -> program, the inverse of print.cpp: gives the untyped tree of syntax/ its meaning. Ops come from the
// dispatcher, literals and defaults from their schemas. Text may come from a file of somebody else's: whatever does not
// fit is refused with line and column, and sizes are checked before anything is allocated.
#include <ATen/core/function_schema.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lissome/program.h"
#include "lissome/program/interpret/overload.h"
#include "lissome/program/syntax/literal.h"
#include "lissome/program/syntax/program_lexer.h"
#include "lissome/program/syntax/program_text.h"
#include "lissome/program/text/parse_weights.h"
#include "lissome/program/text/text_words.h"

namespace lissome {
namespace {

class ProgramResolver {
 public:
  // `scope` is empty for the outermost program.
  ProgramResolver(const TextProgram& text, const GivenTensors& given, std::string scope)
      : text_(text), given_(given), scope_(std::move(scope)), is_body_(!scope_.empty()) {}

  Program resolve() {
    program_.training = text_.training;
    program_.call_tree = {text_.call_inputs, text_.call_outputs};
    for (const TextDimension& dimension : text_.dimensions) declare_dimension(dimension);
    for (const TextRequirement& requirement : text_.requirements) declare_requirement(requirement);
    for (const TextInput& input : text_.inputs) {
      declare_input(input.value, input.name.value_or(input.value), resolve_type(input.type), input.place);
    }
    for (const TextWeight& weight : text_.weights) declare_weight(weight);
    for (const TextNode& node : text_.nodes) add_node(node);
    for (const TextWrite& write : text_.writes) add_write(write);
    for (const TextOutput& output : text_.outputs) {
      std::string name = output.name.value_or(usual_output_name(program_.outputs.size()));
      program_.outputs.push_back({resolve_argument(output.value), std::move(name)});
    }
    if (!text_.has_return) return_unread_values();
    add_weights();
    return std::move(program_);
  }

 private:
  // ---- declarations ------------------------------------------------------------------------------------------------
  void declare_dimension(const TextDimension& text) {
    const std::string name = Dimension::named(text.name).name();
    if (std::any_of(program_.dimensions.begin(), program_.dimensions.end(),
                    [&](const NamedDimension& other) { return other.name == name; })) {
      refuse_text(text.place, "dimension " + name + " is declared twice");
    }
    NamedDimension dimension{name, text.minimum.value_or(0), text.maximum.value_or(INT64_MAX)};
    if (dimension.minimum < 0) refuse_text(text.place, "the smallest size of '" + name + "' is negative");
    if (dimension.minimum > dimension.maximum) {
      refuse_text(text.place, "dimension " + name + " has an empty range");
    }
    program_.dimensions.push_back(std::move(dimension));
  }

  void declare_requirement(const TextRequirement& text) {
    try {
      program_.requirements.push_back(SizeRequirement::parse(text.text));
    } catch (const Error& error) {
      refuse_text(text.place, error.message());
    }
  }

  ValueId add_value(const std::string& name, ValueType type, TextPlace place) {
    if (program_.values.size() >= INT32_MAX) refuse_text(place, "too many values");
    const ValueId id{static_cast<int32_t>(program_.values.size())};
    if (!values_.emplace(name, id).second) refuse_text(place, "%" + write_name(name) + " is defined twice");
    program_.values.push_back({name, std::move(type)});
    return id;
  }

  ValueId declare_input(const std::string& value, std::string name, ValueType type, TextPlace place) {
    if (!is_body_) {
      for (const Dimension& size : type.sizes) declare_names(size);
    }
    const ValueId id = add_value(value, std::move(type), place);
    program_.inputs.push_back({id, std::move(name)});
    return id;
  }

  void declare_names(const Dimension& size) {
    for (const std::string& name : size.names()) {
      if (std::none_of(program_.dimensions.begin(), program_.dimensions.end(),
                       [&](const NamedDimension& other) { return other.name == name; })) {
        program_.dimensions.push_back({name});
      }
    }
  }

  ValueId declare_weight(const TextWeight& text) {
    const ValueId id{static_cast<int32_t>(program_.values.size())};
    if (!weights_.emplace(text.name, id).second) {
      refuse_text(text.place, "@" + write_name(text.name) + " is declared twice");
    }
    // Named for good by add_weights, when the names of all other values are known.
    program_.values.push_back({"@" + text.name, resolve_type(text.type)});
    weight_texts_.push_back(text);
    return id;
  }

  void add_weights() {
    std::vector<WeightText> wanted;
    for (const TextWeight& text : weight_texts_) {
      wanted.push_back({text, program_.value(weights_.at(text.name)).type});
    }
    std::vector<at::Tensor> tensors = make_weights(wanted, given_, scope_);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const TextWeight& text = weight_texts_[i];
      const ValueId id = weights_.at(text.name);
      program_.weights.push_back(
          {id, text.name, *find_weight_role(text.role), tensors[i], !text.frozen, !text.temporary});
      program_.rename_value(id, weight_texts_[i].name);
    }
  }

  ValueType resolve_type(const TextType& text) const {
    ValueType type;
    if (text.word.empty()) return type;
    const auto kind = find_value_kind(text.word);
    if (text.has_brackets && kind != ValueKind::integer) {
      const auto dtype = parse_dtype(text.word);
      if (!dtype) {
        refuse_text(text.place, "'" + text.word + "' is no dtype; known are f32, f16, bf16, f64, i64, bool ...");
      }
      type.kind = ValueKind::tensor;
      type.dtype = *dtype;
    } else {
      if (!kind) {
        refuse_text(text.place, "'" + text.word +
                                    "' is no type; a tensor's is like f32[8, 64] or f32[...], others are "
                                    "int, float, bool, str, list and none");
      }
      type.kind = *kind;
    }
    type.sized = text.sized;
    for (const std::string& size : text.sizes) {
      try {
        type.sizes.push_back(Dimension::parse(size));
      } catch (const Error& error) {
        refuse_text(text.place, error.message());
      }
    }
    return type;
  }

  // ---- uses --------------------------------------------------------------------------------------------------------
  ValueId resolve_value(const TextArgument& text) {
    if (const auto found = values_.find(text.text); found != values_.end()) {
      if (text.type) check_type(text, program_.value(found->second).type);
      return found->second;
    }
    if (text.type && !is_body_) return declare_input(text.text, text.text, resolve_type(*text.type), text.place);
    refuse_text(text.place, "%" + write_name(text.text) + " is used before it is defined" +
                                (is_body_ ? "; a child program sees only its own inputs"
                                          : "; an input is declared by `input %x: f32[8, 64]`, or by its type where it "
                                            "is first used"));
  }

  ValueId resolve_weight(const TextArgument& text) {
    if (const auto found = weights_.find(text.text); found != weights_.end()) {
      if (text.type) check_type(text, program_.value(found->second).type);
      return found->second;
    }
    if (text.type)
      return declare_weight({.role = "parameter", .name = text.text, .type = *text.type, .place = text.place});
    refuse_text(text.place, "@" + write_name(text.text) +
                                " is not declared; write `parameter @name: f32[64, 64]`, or "
                                "its type where it is first used");
  }

  void check_type(const TextArgument& text, const ValueType& declared) const {
    if (resolve_type(*text.type) == declared) return;
    refuse_text(text.place, "'" + text.text + "' was declared with another type");
  }

  Argument resolve_argument(const TextArgument& text) {
    using Kind = TextArgument::Kind;
    switch (text.kind) {
      case Kind::value: return read(resolve_value(text));
      case Kind::weight: return read(resolve_weight(text));
      case Kind::integer: return text.integer;
      case Kind::floating: return text.floating;
      case Kind::string: return text.text;
      case Kind::complex: return std::complex<double>(text.floating, text.imaginary);
      case Kind::device: return Device{text.text};
      case Kind::list: {
        ArgumentList items;
        for (const TextArgument& item : text.items) {
          if (!item.keyword.empty()) refuse_text(item.place, "a keyword inside a list");
          items.push_back(resolve_argument(item));
        }
        return items;
      }
      case Kind::word: break;
    }
    if (auto literal = find_literal(text.text)) return std::move(*literal);
    refuse_text(text.place, "'" + text.text +
                                "' is no literal; text stands in quotes, values begin with %, weights "
                                "with @");
  }

  ValueId read(ValueId id) {
    read_.insert(id);
    return id;
  }

  // ---- nodes -------------------------------------------------------------------------------------------------------
  void add_node(const TextNode& text) {
    std::vector<NamedArgument> arguments;
    for (const TextArgument& argument : text.arguments) {
      arguments.push_back({argument.keyword, resolve_argument(argument), argument.place});
    }
    Node node;
    node.op = find_overload(text.op, arguments, program_, text.place);
    node.arguments = bind_arguments(node.op, std::move(arguments), text.place);
    if (node.op.has_schema() && text.results.size() != node.op.schema().returns().size()) {
      refuse_text(text.place, node.op.name() + " has " + std::to_string(node.op.schema().returns().size()) +
                                  " results, the text names " + std::to_string(text.results.size()));
    }
    for (const TextResult& result : text.results) {
      node.results.push_back(
          result.name.empty()
              ? ValueId::none
              : add_value(result.name, result.type ? resolve_type(*result.type) : ValueType{}, result.place));
    }
    for (const TextProgram& body : text.bodies) {
      const std::string scope = body_scope(scope_, program_.nodes.size(), node.bodies.size());
      node.bodies.push_back(std::make_shared<const Program>(ProgramResolver(body, given_, scope).resolve()));
    }
    if (text.origin) {
      const TextOrigin& origin = *text.origin;
      const std::string key = origin.source + '\0' + origin.code + '\0' + origin.module + '\0' + origin.module_type;
      auto& shared = origins_[key];
      if (!shared) {
        shared = std::make_shared<const Origin>(Origin{origin.source, origin.code, origin.module, origin.module_type});
      }
      node.origin = shared;
    }
    program_.nodes.push_back(std::move(node));
  }

  void add_write(const TextWrite& text) {
    const Argument target = resolve_argument(text.target);
    const Argument value = resolve_argument(text.value);
    if (!target.is_value() || !value.is_value()) {
      refuse_text(text.target.place, "a write has a weight or an input on its left and a value on its right");
    }
    program_.writes.push_back({target.value(), value.value()});
  }

  void return_unread_values() {
    for (const Node& node : program_.nodes) {
      for (const ValueId id : node.results) {
        if (id == ValueId::none || read_.contains(id)) continue;
        program_.outputs.push_back({id, usual_output_name(program_.outputs.size())});
      }
    }
  }

  const TextProgram& text_;
  const GivenTensors& given_;
  const std::string scope_;
  const bool is_body_;
  Program program_;
  std::unordered_map<std::string, ValueId> values_, weights_;
  std::vector<TextWeight> weight_texts_;
  std::unordered_set<ValueId> read_;
  std::unordered_map<std::string, std::shared_ptr<const Origin>> origins_;
};

}  // namespace

Program parse_program_with(std::string_view text, const GivenTensors& given) {
  register_ops();
  return ProgramResolver(read_program_text(text), given, "").resolve();
}

Program parse_complete_program(std::string_view text, const std::vector<std::pair<std::string, at::Tensor>>& weights) {
  GivenTensors given;
  given.complete = true;
  for (const auto& [name, tensor] : weights) given.by_name.insert_or_assign(name, tensor);
  return parse_program_with(text, given);
}

Program parse_judged_program(std::string_view text, const std::vector<std::pair<std::string, at::Tensor>>& weights) {
  Program program = parse_complete_program(text, weights);
  try {
    verify_program(program, Stage::imported);
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid_input, error.message());
  }
  judge_program(program);
  return program;
}

Program parse_program(std::string_view text, const std::vector<std::pair<std::string, at::Tensor>>& weights) {
  GivenTensors given;
  for (const auto& [name, tensor] : weights) given.by_name.insert_or_assign(name, tensor);
  return parse_program_with(text, given);
}

}  // namespace lissome
