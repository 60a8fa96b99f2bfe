// Edits of programs that need the schemas of ops.
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <iterator>

#include "tests/fuzz/program/op_choice.h"
#include "tests/fuzz/program/program_edits.h"

namespace lissome {
namespace {

using Kind = TextArgument::Kind;

char classify(const TextArgument& argument) {
  switch (argument.kind) {
    case Kind::value:
    case Kind::weight: return 'v';
    case Kind::integer: return 'i';
    case Kind::floating: return 'f';
    case Kind::list: return 'l';
    case Kind::string: return 's';
    default: return argument.text == "true" || argument.text == "false" ? 'b' : argument.text == "none" ? 'n' : 'w';
  }
}

// An argument of this type, from what may be read here and from literals.
TextArgument make_argument(const c10::Type& type, const std::vector<TextArgument>& readable, FuzzRandom& random) {
  constexpr const char* kDtypes[] = {"f32", "i64", "bool", "bf16", "f64", "c64", "u8", "i32"};
  constexpr const char* kFormats[] = {"contiguous_format", "channels_last", "preserve_format"};
  TextArgument made;
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      if (random.once_in(2)) return make_word("none");
      return make_argument(*type.expectRef<c10::OptionalType>().getElementType(), readable, random);
    case c10::TypeKind::TensorType:
      return readable.empty() ? make_word("none") : readable[random.below(readable.size())];
    case c10::TypeKind::ListType: {
      std::vector<TextArgument> items;
      for (size_t count = random.below(4); items.size() < count;)
        items.push_back(make_argument(*type.expectRef<c10::ListType>().getElementType(), readable, random));
      return make_list(std::move(items));
    }
    case c10::TypeKind::BoolType: return make_word(random.once_in(2) ? "true" : "false");
    case c10::TypeKind::FloatType:
      made.kind = Kind::floating;
      made.floating = pick_floating(random);
      return made;
    case c10::TypeKind::StringType:
      made.kind = Kind::string;
      made.text = random.once_in(2) ? "none" : "mean";
      return made;
    case c10::TypeKind::ScalarTypeType: return make_word(random.pick(kDtypes));
    case c10::TypeKind::LayoutType: return make_word(random.once_in(4) ? "sparse_coo" : "strided");
    case c10::TypeKind::MemoryFormatType: return make_word(random.pick(kFormats));
    case c10::TypeKind::DeviceObjType: return make_word("cpu");
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::NumberType: return make_integer(pick_integer(random));
    default: return make_word("none");
  }
}

TextArgument name_value(const std::string& name) {
  TextArgument argument;
  argument.kind = Kind::value;
  argument.text = name;
  return argument;
}

}  // namespace

void change_op(EditedProgram& program, FuzzRandom& random) {
  if (program.nodes().empty()) return;
  TextNode& node = random.pick(program.nodes());
  std::string letters;
  for (const TextArgument& argument : node.arguments)
    if (argument.keyword.empty()) letters += classify(argument);
  const std::vector<Op>& like = find_like_ops(letters, node.results.size());
  if (like.empty() || !node.bodies.empty()) return;
  node.op = like[random.below(like.size())].name();
  std::erase_if(node.arguments, [](const TextArgument& argument) { return !argument.keyword.empty(); });
  for (TextResult& result : node.results) result.type.reset();
}

void insert_node(EditedProgram& program, FuzzRandom& random) {
  if (program.nodes().size() > 24 || allowed_ops().empty()) return;
  const size_t position = random.below(program.nodes().size() + 1);
  const std::vector<TextArgument> readable = program.list_readable(position);
  const c10::FunctionSchema& schema = allowed_ops()[random.below(allowed_ops().size())].schema();
  TextNode node;
  node.op = c10::toString(schema.operator_name());
  for (const c10::Argument& wanted : schema.arguments()) {
    if (wanted.default_value() && (wanted.kwarg_only() || random.once_in(3))) {
      if (!wanted.kwarg_only()) break;
      if (!random.once_in(4)) continue;
    }
    TextArgument argument = make_argument(*wanted.real_type(), readable, random);
    if (wanted.kwarg_only()) argument.keyword = wanted.name();
    node.arguments.push_back(std::move(argument));
  }
  const std::string name = program.make_name();
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    node.results.push_back({name + "_" + std::to_string(i), std::nullopt, {}});
    program.program().outputs.push_back({name_value(node.results.back().name), std::nullopt});
  }
  program.nodes().insert(program.nodes().begin() + static_cast<std::ptrdiff_t>(position), std::move(node));
}

void wrap_node(EditedProgram& program, FuzzRandom& random) {
  if (program.nodes().empty()) return;
  TextNode& node = random.pick(program.nodes());
  std::vector<TextArgument> operands;
  TextProgram body;
  for (TextArgument& argument : node.arguments) {
    if (argument.kind != Kind::value && argument.kind != Kind::weight) continue;
    TextArgument outside = argument;
    outside.keyword.clear();
    operands.push_back(outside);
    argument.kind = Kind::value;
    argument.text = "b" + std::to_string(operands.size());
    body.inputs.push_back({argument.text, std::nullopt, {}, {}});
  }
  std::vector<TextResult> results = node.results;
  for (TextResult& result : node.results) {
    result.name += "_b";
    body.outputs.push_back({name_value(result.name), std::nullopt});
  }
  body.has_return = true;
  body.nodes.push_back(std::move(node));
  node = {};
  node.results = std::move(results);
  node.bodies = {body};
  const auto count = static_cast<int64_t>(operands.size());
  constexpr const char* kModes[] = {"grad=0", "grad=1", "autocast=cpu,bf16,1", "vmap=error;0;0", "autocast=cpu,bf16,0"};
  TextArgument mode;
  mode.kind = Kind::string;
  mode.text = random.pick(kModes);
  switch (random.below(4)) {
    case 0:
      node.op = "lissome::region";
      operands.insert(operands.begin(), mode);
      break;
    case 1:
      node.op = "lissome::map";
      operands.insert(operands.begin(), make_integer(random.once_in(8) ? pick_integer(random) : count));
      break;
    case 2:
      node.op = "lissome::cond";
      operands.insert(operands.begin(), make_word(random.once_in(2) ? "true" : "false"));
      node.bodies.push_back(body);
      break;
    default:
      node.op = "lissome::scan";
      operands.insert(operands.begin(), {make_integer(0), make_integer(count), make_word("false")});
  }
  node.arguments = std::move(operands);
}

}  // namespace lissome
