#include "tests/fuzz/program/program_edits.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace lissome {
namespace {

using Kind = TextArgument::Kind;

constexpr const char* kDtypes[] = {"f32", "f32", "i64", "bool", "bf16", "f64", "i32", "u8", "f16", "i8", "c64", "i16"};
constexpr const char* kWords[] = {
    "true",          "false",   "none",       "f32", "i64", "bool", "bf16", "f64", "contiguous_format",
    "channels_last", "strided", "sparse_coo", "cpu", "c64", "u8"};
constexpr const char* kStrings[] = {"none", "mean",  "sum",   "tanh",   "reflect", "constant", "replicate",
                                    "",     "floor", "trunc", "linear", "ij",      "xy",       "circular"};

void collect_names(const TextArgument& argument, std::set<std::string>& names) {
  if (argument.kind == Kind::value) names.insert(argument.text);
  for (const TextArgument& item : argument.items) collect_names(item, names);
}

TextArgument read_name(Kind kind, const std::string& name) {
  TextArgument argument;
  argument.kind = kind;
  argument.text = name;
  return argument;
}

TextNode* pick_node(EditedProgram& program, FuzzRandom& random) {
  return program.nodes().empty() ? nullptr : &random.pick(program.nodes());
}

// An argument of the node, or an item of a list in it; null when there is none.
TextArgument* pick_argument(std::vector<TextArgument>& arguments, FuzzRandom& random) {
  if (arguments.empty()) return nullptr;
  TextArgument& argument = random.pick(arguments);
  if (argument.kind != Kind::list || argument.items.empty() || random.once_in(6)) return &argument;
  return pick_argument(argument.items, random);
}

void change_list(TextArgument& list, FuzzRandom& random) {
  if (list.items.empty() || random.once_in(3)) {
    list.items.push_back(list.items.empty() ? make_integer(pick_integer(random)) : random.pick(list.items));
  } else if (random.once_in(2)) {
    list.items.pop_back();
  } else {
    std::swap(random.pick(list.items), random.pick(list.items));
  }
}

// Calls `visit` for each argument, items of lists included.
template <typename Visit>
void visit_arguments(std::vector<TextArgument>& arguments, const Visit& visit) {
  for (TextArgument& argument : arguments) {
    visit(argument);
    visit_arguments(argument.items, visit);
  }
}

TextType* pick_type(TextProgram& program, FuzzRandom& random) {
  std::vector<TextType*> types;
  for (TextInput& input : program.inputs) types.push_back(&input.type);
  for (TextWeight& weight : program.weights) types.push_back(&weight.type);
  for (TextNode& node : program.nodes)
    for (TextResult& result : node.results)
      if (result.type && random.once_in(4)) types.push_back(&*result.type);
  return types.empty() ? nullptr : random.pick(types);
}

std::string pick_size_text(FuzzRandom& random) {
  return std::to_string(random.once_in(12) ? pick_integer(random) : static_cast<int64_t>(random.below(7)));
}

}  // namespace

TextArgument make_integer(int64_t value) {
  TextArgument argument;
  argument.kind = Kind::integer;
  argument.integer = value;
  return argument;
}

TextArgument make_word(std::string word) {
  TextArgument argument;
  argument.text = std::move(word);
  return argument;
}

TextArgument make_list(std::vector<TextArgument> items) {
  TextArgument argument;
  argument.kind = Kind::list;
  argument.items = std::move(items);
  return argument;
}

int64_t pick_integer(FuzzRandom& random) {
  constexpr int64_t kNumbers[] = {0,
                                  1,
                                  2,
                                  3,
                                  -1,
                                  -2,
                                  4,
                                  5,
                                  6,
                                  7,
                                  8,
                                  -3,
                                  16,
                                  64,
                                  100,
                                  127,
                                  128,
                                  255,
                                  1000,
                                  65536,
                                  INT32_MAX,
                                  -17,
                                  -100,
                                  INT64_MAX,
                                  INT64_MIN,
                                  INT64_MAX - 1,
                                  int64_t{1} << 32,
                                  100'000'000'000};
  return kNumbers[random.below(random.once_in(4) ? std::size(kNumbers) : 8)];
}

double pick_floating(FuzzRandom& random) {
  constexpr double kNumbers[] = {0.0, 1.0, 0.5, -1.0, 2.0, 1e-5, -0.0, 1e30, HUGE_VAL, -HUGE_VAL, NAN, 1e18};
  return kNumbers[random.below(std::size(kNumbers))];
}

std::vector<TextArgument> EditedProgram::list_readable(size_t position) const {
  std::vector<TextArgument> readable;
  for (const TextInput& input : program_.inputs) readable.push_back(read_name(Kind::value, input.value));
  for (const TextWeight& weight : program_.weights) readable.push_back(read_name(Kind::weight, weight.name));
  for (size_t i = 0; i < position && i < program_.nodes.size(); ++i) {
    for (const TextResult& result : program_.nodes[i].results)
      if (!result.name.empty()) readable.push_back(read_name(Kind::value, result.name));
  }
  return readable;
}

std::string EditedProgram::make_name() const {
  std::set<std::string> names;
  for (const TextInput& input : program_.inputs) names.insert(input.value);
  for (const TextNode& node : program_.nodes) {
    for (const TextResult& result : node.results) names.insert(result.name);
    for (const TextArgument& argument : node.arguments) collect_names(argument, names);
  }
  size_t number = names.size();
  while (names.contains("m" + std::to_string(number))) ++number;
  return "m" + std::to_string(number);
}

std::vector<TextProgram*> list_programs(TextProgram& root) {
  std::vector<TextProgram*> programs{&root};
  for (size_t i = 0; i < programs.size(); ++i)
    for (TextNode& node : programs[i]->nodes)
      for (TextProgram& body : node.bodies) programs.push_back(&body);
  return programs;
}

void change_literal(EditedProgram& program, FuzzRandom& random) {
  TextNode* node = pick_node(program, random);
  TextArgument* argument = node ? pick_argument(node->arguments, random) : nullptr;
  if (!argument) return;
  switch (argument->kind) {
    case Kind::integer:
      argument->integer =
          random.once_in(3) && argument->integer < INT32_MAX ? argument->integer + 1 : pick_integer(random);
      break;
    case Kind::floating: argument->floating = pick_floating(random); break;
    case Kind::string: argument->text = random.pick(kStrings); break;
    case Kind::word: argument->text = random.pick(kWords); break;
    case Kind::list: change_list(*argument, random); break;
    default: break;
  }
}

void rewire_argument(EditedProgram& program, FuzzRandom& random) {
  if (program.nodes().empty()) return;
  const size_t position = random.below(program.nodes().size());
  TextArgument* argument = pick_argument(program.nodes()[position].arguments, random);
  const std::vector<TextArgument> readable = program.list_readable(position);
  if (!argument || readable.empty()) return;
  if (argument->kind != Kind::value && argument->kind != Kind::weight && !random.once_in(10)) return;
  const std::string keyword = argument->keyword;
  *argument = readable[random.below(readable.size())];
  argument->keyword = keyword;
}

void change_arguments(EditedProgram& program, FuzzRandom& random) {
  TextNode* node = pick_node(program, random);
  if (!node) return;
  if (!node->arguments.empty() && random.once_in(2)) {
    node->arguments.erase(node->arguments.begin() + static_cast<std::ptrdiff_t>(random.below(node->arguments.size())));
  } else if (!node->arguments.empty() && random.once_in(2)) {
    std::swap(random.pick(node->arguments), random.pick(node->arguments));
  } else {
    node->arguments.push_back(random.once_in(2) ? make_integer(pick_integer(random)) : make_word(random.pick(kWords)));
  }
}

void change_type(EditedProgram& program, FuzzRandom& random) {
  TextType* type = pick_type(program.program(), random);
  if (!type) return;
  if (random.once_in(3)) {
    if (type->has_brackets) type->word = random.pick(kDtypes);
  } else if (!type->sizes.empty() && random.once_in(5)) {
    type->sizes.pop_back();
  } else if (type->sizes.empty() || random.once_in(5)) {
    if (type->has_brackets && type->sized) type->sizes.push_back(pick_size_text(random));
  } else {
    random.pick(type->sizes) = pick_size_text(random);
  }
}

void change_size_everywhere(EditedProgram& program, FuzzRandom& random) {
  const TextType* chosen = pick_type(program.program(), random);
  if (!chosen || chosen->sizes.empty()) return;
  const std::string before = chosen->sizes[random.below(chosen->sizes.size())], after = pick_size_text(random);
  const int64_t number = std::strtoll(before.c_str(), nullptr, 10), replaced = std::strtoll(after.c_str(), nullptr, 10);
  const auto change = [&](TextType& type) { std::replace(type.sizes.begin(), type.sizes.end(), before, after); };
  for (TextInput& input : program.program().inputs) change(input.type);
  for (TextWeight& weight : program.program().weights) change(weight.type);
  for (TextNode& node : program.nodes()) {
    for (TextResult& result : node.results)
      if (result.type) change(*result.type);
    visit_arguments(node.arguments, [&](TextArgument& argument) {
      if (argument.kind == Kind::integer && argument.integer == number) argument.integer = replaced;
    });
  }
}

void change_weight(EditedProgram& program, FuzzRandom& random) {
  std::vector<TextWeight>& weights = program.program().weights;
  if (weights.empty()) return;
  TextWeight& weight = random.pick(weights);
  switch (random.below(5)) {
    case 0: weight.role = weight.role == "buffer" ? "parameter" : "buffer"; break;
    case 1: {
      std::vector<int64_t> strides;
      for (size_t i = 0; i < weight.type.sizes.size(); ++i) strides.push_back(pick_integer(random));
      weight.strides = strides;
      break;
    }
    case 2: weight.tied = weight.tied.empty() ? random.pick(weights).name : ""; break;
    case 3: weight.offset = pick_integer(random); break;
    default: {
      constexpr const char* kLayouts[] = {"sparse_coo", "sparse_csr", "", "sparse_bsr", "sparse_csc"};
      weight.layout = random.pick(kLayouts);
    }
  }
}

void change_outputs(EditedProgram& program, FuzzRandom& random) {
  std::vector<TextOutput>& outputs = program.program().outputs;
  const std::vector<TextArgument> readable = program.list_readable(program.nodes().size());
  if (readable.empty()) return;
  program.program().has_return = true;
  if (outputs.empty() || (random.once_in(2) && outputs.size() < 8)) {
    outputs.push_back({readable[random.below(readable.size())], std::nullopt});
  } else if (random.once_in(3) && outputs.size() > 1) {
    outputs.pop_back();
  } else {
    random.pick(outputs).value =
        random.once_in(6) ? make_integer(pick_integer(random)) : readable[random.below(readable.size())];
  }
}

void change_writes(EditedProgram& program, FuzzRandom& random) {
  std::vector<TextWrite>& writes = program.program().writes;
  const std::vector<TextArgument> targets = program.list_readable(0);
  const std::vector<TextArgument> readable = program.list_readable(program.nodes().size());
  if (!writes.empty() && random.once_in(3)) {
    writes.pop_back();
  } else if (!targets.empty()) {
    writes.push_back({targets[random.below(targets.size())], readable[random.below(readable.size())]});
  }
}

void change_dimensions(EditedProgram& program, FuzzRandom& random) {
  std::vector<TextDimension>& dimensions = program.program().dimensions;
  if (dimensions.empty()) dimensions.push_back({"n", 1, 64, {}});
  TextDimension& dimension = random.pick(dimensions);
  if (random.once_in(4)) {
    (random.once_in(2) ? dimension.minimum : dimension.maximum) = pick_integer(random);
    return;
  }
  TextType* type = pick_type(program.program(), random);
  if (!type || type->sizes.empty()) return;
  const std::string forms[] = {dimension.name, "2*" + dimension.name, dimension.name + " + 1", dimension.name + "//2",
                               "Max(1, " + dimension.name + ")"};
  random.pick(type->sizes) = random.pick(forms);
}

void drop_node(EditedProgram& program, FuzzRandom& random) {
  std::vector<TextNode>& nodes = program.nodes();
  if (nodes.empty()) return;
  const size_t position = random.below(nodes.size());
  const TextNode dropped = nodes[position];
  nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(position));
  const std::vector<TextArgument> readable = program.list_readable(position);
  if (readable.empty()) return;
  const TextArgument instead = readable[random.below(readable.size())];
  const auto replace = [&](TextArgument& argument) {
    for (const TextResult& result : dropped.results) {
      if (argument.kind != Kind::value || argument.text != result.name) continue;
      argument.kind = instead.kind;
      argument.text = instead.text;
    }
  };
  for (TextNode& node : nodes) visit_arguments(node.arguments, replace);
  for (TextOutput& output : program.program().outputs) replace(output.value);
  for (TextWrite& write : program.program().writes) replace(write.value);
}

void repeat_node(EditedProgram& program, FuzzRandom& random) {
  std::vector<TextNode>& nodes = program.nodes();
  if (nodes.empty() || nodes.size() > 24) return;
  const size_t position = random.below(nodes.size());
  TextNode node = nodes[position];
  const std::string name = program.make_name();
  for (size_t i = 0; i < node.results.size(); ++i)
    if (!node.results[i].name.empty()) node.results[i].name = name + "_" + std::to_string(i);
  if (!node.results.empty() && !nodes[position].results[0].name.empty() && random.once_in(2)) {
    TextArgument* argument = pick_argument(node.arguments, random);
    if (argument && argument->kind == Kind::value) argument->text = nodes[position].results[0].name;
  }
  program.program().outputs.push_back({read_name(Kind::value, name + "_0"), std::nullopt});
  if (node.results.empty() || node.results[0].name.empty()) program.program().outputs.pop_back();
  nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(position + 1), std::move(node));
}

void move_node(EditedProgram& program, FuzzRandom& random) {
  if (program.nodes().size() > 1) std::swap(random.pick(program.nodes()), random.pick(program.nodes()));
}

}  // namespace lissome
