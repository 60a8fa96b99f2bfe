// Reads program text into its untyped tree by recursive descent of bounded depth. Newlines end a statement, except
// inside brackets and after a comma.
#include "lissome/program/syntax/program_text.h"

#include <cmath>

#include "lissome/base.h"
#include "lissome/program/syntax/literal.h"
#include "lissome/program/syntax/origin_text.h"
#include "lissome/program/syntax/program_lexer.h"

namespace lissome {
namespace {

using Kind = TextToken::Kind;

constexpr int kMaxLists = 64;
constexpr int kMaxPrograms = 32;
constexpr size_t kMaxProgramText = size_t{1} << 30;

// "a, Max(b, c), d" at its outer commas.
std::vector<std::string> split_sizes(const std::string& text) {
  std::vector<std::string> sizes;
  std::string size;
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      sizes.push_back(std::move(size));
      size.clear();
    } else if (c != ' ' || !size.empty()) {
      size += c;
    }
  }
  if (!size.empty() || !sizes.empty()) sizes.push_back(std::move(size));
  return sizes;
}

class ProgramReader {
 public:
  explicit ProgramReader(std::string_view text) : lexer_(text) { advance(); }

  TextProgram read() {
    TextProgram program = read_statements();
    if (token_.kind != Kind::end) refuse("'}' without '{'");
    return program;
  }

 private:
  // ---- tokens ------------------------------------------------------------------------------------------------------
  void advance() { token_ = lexer_.read(); }
  [[noreturn]] void refuse(const std::string& message) const { refuse_text(token_.place, message); }

  std::string show_token() const {
    switch (token_.kind) {
      case Kind::end: return "the end of the text";
      case Kind::line_end:
      case Kind::comment: return "the end of the line";
      case Kind::value: return "%" + write_name(token_.text);
      case Kind::weight: return "@" + write_name(token_.text);
      case Kind::integer: return std::to_string(token_.integer);
      case Kind::floating: return write_floating(token_.floating);
      case Kind::string: return write_string(token_.text);
      default: return "'" + token_.text + "'";
    }
  }
  [[noreturn]] void refuse_token(const std::string& allowed) const {
    refuse(show_token() + " where only " + allowed + " may stand");
  }

  bool at(std::string_view sign) const { return token_.kind == Kind::punctuation && token_.text == sign; }
  bool at_word(std::string_view word) const { return token_.kind == Kind::word && token_.text == word; }
  bool take(std::string_view sign) {
    if (!at(sign)) return false;
    advance();
    return true;
  }
  bool take_word(std::string_view word) {
    if (!at_word(word)) return false;
    advance();
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) refuse_token("'" + std::string(sign) + "'");
  }
  void skip_lines() {
    while (token_.kind == Kind::line_end || token_.kind == Kind::comment) advance();
  }
  bool take_comma() {
    if (!take(",")) return false;
    skip_lines();
    return true;
  }
  std::string take_text(Kind kind, const std::string& allowed) {
    if (token_.kind != kind) refuse_token(allowed);
    std::string text = std::move(token_.text);
    advance();
    return text;
  }
  int64_t take_integer(const std::string& allowed) {
    if (token_.kind != Kind::integer) refuse_token(allowed);
    const int64_t value = token_.integer;
    advance();
    return value;
  }
  // A bare or quoted name without sign.
  std::string take_name(const std::string& allowed) {
    return take_text(token_.kind == Kind::string ? Kind::string : Kind::word, allowed);
  }

  // ---- statements --------------------------------------------------------------------------------------------------
  TextProgram read_statements() {
    if (++programs_ > kMaxPrograms) refuse("programs nested deeper than " + std::to_string(kMaxPrograms));
    TextProgram program;
    for (skip_lines(); token_.kind != Kind::end && !at("}"); skip_lines()) {
      read_statement(program);
      if (token_.kind != Kind::end && token_.kind != Kind::line_end && token_.kind != Kind::comment && !at("}")) {
        refuse_token("the end of the line");
      }
    }
    --programs_;
    return program;
  }

  void read_statement(TextProgram& program) {
    if (token_.kind == Kind::word && token_.text != "_") {
      if (take_word("training")) {
        program.training = true;
        return;
      }
      if (take_word("dim")) return read_each([&] { read_dimension(program); });
      if (take_word("require")) return read_each([&] { read_requirement(program); });
      if (take_word("input")) return read_each([&] { read_input(program); });
      if (at_word("parameter") || at_word("buffer") || at_word("constant")) {
        const std::string role = take_text(Kind::word, "a role");
        return read_each([&] { read_weight(program, role); });
      }
      if (take_word("call")) return read_call_tree(program);
      if (take_word("return")) return read_return(program);
      return read_node(program, {});
    }
    if (token_.kind == Kind::weight || token_.kind == Kind::value || at_word("_"))
      return read_results_or_write(program);
    refuse_token(
        "a statement (dim, input, parameter, buffer, constant, training, %result = op(...), @state <- %value, "
        "return)");
  }

  template <typename Read>
  void read_each(Read&& read) {
    do read();
    while (take_comma());
  }

  // batch in 1..64; batch in 2..
  void read_dimension(TextProgram& program) {
    TextDimension dimension;
    dimension.place = token_.place;
    dimension.name = take_text(Kind::word, "the name of a dimension");
    if (take_word("in")) {
      dimension.minimum = take_integer("the smallest size");
      expect("..");
      if (token_.kind == Kind::integer) dimension.maximum = take_integer("the largest size");
    }
    program.dimensions.push_back(std::move(dimension));
  }

  // "n % 2 == 0"
  void read_requirement(TextProgram& program) {
    const TextPlace place = token_.place;
    program.requirements.push_back({take_text(Kind::string, "a comparison of sizes as a string"), place});
  }

  void read_input(TextProgram& program) {
    TextInput input;
    input.place = token_.place;
    input.value = take_text(Kind::value, "an input such as %x: f32[8, 64]");
    if (at(":")) input.type = read_type();
    if (take_word("as")) input.name = take_name("the input's name");
    program.inputs.push_back(std::move(input));
  }

  void read_weight(TextProgram& program, const std::string& role) {
    TextWeight weight;
    weight.role = role;
    weight.place = token_.place;
    weight.name = take_text(Kind::weight, "a weight such as @fc.weight: f32[64, 64]");
    weight.type = read_type();
    while (token_.kind == Kind::word) {
      if (take_word("strides")) {
        weight.strides = read_integers();
      } else if (take_word("tied")) {
        weight.tied = take_text(Kind::weight, "the weight that it is tied to");
      } else if (take_word("offset")) {
        weight.offset = take_integer("an offset in elements");
      } else if (take_word("frozen")) {
        weight.frozen = true;
      } else if (take_word("temporary")) {
        weight.temporary = true;
      } else if (token_.text.starts_with("sparse_")) {
        weight.layout = take_text(Kind::word, "a layout");
      } else {
        refuse_token("frozen, temporary, strides [...], tied @name, offset N or a sparse layout");
      }
    }
    if (take("=")) weight.fill = read_argument();
    program.weights.push_back(std::move(weight));
  }

  std::vector<int64_t> read_integers() {
    expect("[");
    std::vector<int64_t> result;
    while (!at("]")) {
      result.push_back(take_integer("a number"));
      if (!take(",")) break;
    }
    expect("]");
    return result;
  }

  void read_call_tree(TextProgram& program) {
    const std::string side = take_text(Kind::word, "inputs or outputs");
    if (side != "inputs" && side != "outputs") refuse("'call " + side + "'; call inputs and call outputs are known");
    (side == "inputs" ? program.call_inputs : program.call_outputs) = take_text(Kind::string, "JSON in quotes");
  }

  void read_return(TextProgram& program) {
    program.has_return = true;
    if (token_.kind == Kind::end || token_.kind == Kind::line_end || token_.kind == Kind::comment || at("}")) return;
    read_each([&] {
      TextOutput output;
      output.value = read_argument();
      if (take_word("as")) output.name = take_name("the output's name");
      program.outputs.push_back(std::move(output));
    });
  }

  void read_results_or_write(TextProgram& program) {
    TextArgument target = read_argument();
    if (take("<-")) {
      skip_lines();
      program.writes.push_back({std::move(target), read_argument()});
      return;
    }
    std::vector<TextResult> results;
    const auto add = [&](TextArgument&& result) {
      const bool dropped = result.kind == TextArgument::Kind::word && result.text == "_";
      if (result.kind != TextArgument::Kind::value && !dropped) {
        refuse_text(result.place, "only values such as %3, or _, may stand before '='");
      }
      results.push_back({dropped ? "" : std::move(result.text), std::move(result.type), result.place});
    };
    add(std::move(target));
    while (take_comma()) add(read_argument());
    if (!at("=")) refuse_token("'=' or '<-'");
    advance();
    skip_lines();
    read_node(program, std::move(results));
  }

  void read_node(TextProgram& program, std::vector<TextResult> results) {
    TextNode node;
    node.place = token_.place;
    node.results = std::move(results);
    node.op = take_text(Kind::word, "an op such as aten::linear(...)");
    expect("(");
    node.arguments = read_arguments(")");
    while (take("{")) {
      node.bodies.push_back(read_statements());
      if (!at("}")) refuse_token("'}'");
      advance();
    }
    if (token_.kind == Kind::comment) node.origin = read_origin(token_.text);
    program.nodes.push_back(std::move(node));
  }

  // ---- arguments and types -----------------------------------------------------------------------------------------
  std::vector<TextArgument> read_arguments(std::string_view end) {
    if (++lists_ > kMaxLists) refuse("lists nested deeper than " + std::to_string(kMaxLists));
    std::vector<TextArgument> arguments;
    skip_lines();
    while (!at(end)) {
      arguments.push_back(read_argument());
      skip_lines();
      if (!take_comma()) break;
    }
    expect(end);
    --lists_;
    return arguments;
  }

  TextArgument read_argument() {
    TextArgument argument;
    argument.place = token_.place;
    switch (token_.kind) {
      case Kind::value:
      case Kind::weight:
        argument.kind = token_.kind == Kind::value ? TextArgument::Kind::value : TextArgument::Kind::weight;
        argument.text = take_text(token_.kind, "a name");
        if (at(":")) argument.type = read_type();
        return argument;
      case Kind::integer:
        argument.kind = TextArgument::Kind::integer;
        argument.integer = take_integer("a number");
        return argument;
      case Kind::floating:
        argument.kind = TextArgument::Kind::floating;
        argument.floating = token_.floating;
        advance();
        return argument;
      case Kind::string:
        argument.kind = TextArgument::Kind::string;
        argument.text = take_text(Kind::string, "text");
        return argument;
      case Kind::word: return read_word_argument(std::move(argument));
      default: break;
    }
    if (!take("[")) refuse_token("a value, a literal or a list");
    argument.kind = TextArgument::Kind::list;
    argument.items = read_arguments("]");
    return argument;
  }

  // name=argument, complex(1.0, 2.0), device("odd"), channels_last
  TextArgument read_word_argument(TextArgument argument) {
    argument.text = take_text(Kind::word, "a word");
    if (lists_ > 0 && at("=")) {
      if (++lists_ > kMaxLists) refuse("arguments nested too deep");
      advance();
      skip_lines();
      TextArgument value = read_argument();
      --lists_;
      if (!value.keyword.empty()) refuse_text(value.place, "a keyword behind a keyword");
      value.keyword = std::move(argument.text);
      return value;
    }
    if (argument.text == "complex" && take("(")) {
      argument.kind = TextArgument::Kind::complex;
      argument.floating = take_number();
      expect(",");
      argument.imaginary = take_number();
      expect(")");
    } else if (argument.text == "device" && take("(")) {
      argument.kind = TextArgument::Kind::device;
      argument.text = take_text(Kind::string, "a device in quotes");
      expect(")");
    }
    return argument;
  }

  double take_number() {
    double number = 0;
    if (token_.kind == Kind::floating) {
      number = token_.floating;
    } else if (token_.kind == Kind::integer) {
      number = static_cast<double>(token_.integer);
    } else if (at_word("inf") || at_word("nan")) {
      number = token_.text == "inf" ? HUGE_VAL : NAN;
    } else {
      refuse_token("a number");
    }
    advance();
    return number;
  }

  // Stands on ':'. Sizes are read as written, since their arithmetic has signs of its own.
  TextType read_type() {
    if (!at(":")) refuse_token("':' and a type such as f32[8, 64]");
    TextToken word = lexer_.read();
    if (word.kind != Kind::word) {
      token_ = std::move(word);
      refuse_token("a type such as f32[8, 64], int or list");
    }
    TextType type;
    type.word = std::move(word.text);
    type.place = word.place;
    std::string sizes;
    if (lexer_.read_bracketed(sizes)) {
      type.has_brackets = true;
      type.sized = sizes != "...";
      if (type.sized) type.sizes = split_sizes(sizes);
    }
    advance();
    return type;
  }

  ProgramLexer lexer_;
  TextToken token_;
  int programs_ = 0;
  int lists_ = 0;
};

}  // namespace

TextProgram read_program_text(std::string_view text) {
  if (text.size() > kMaxProgramText) {
    throw_error(ErrorKind::invalid_input, "program text of ", text.size(), " bytes; at most ", kMaxProgramText,
                " are allowed");
  }
  return ProgramReader(text).read();
}

}  // namespace lissome
