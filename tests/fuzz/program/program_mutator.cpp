// How fuzz_program's inputs change: by edits of the untyped tree of program text, so that names and most types stay
// valid.
#include <cstring>
#include <optional>

#include "lissome/base.h"
#include "tests/fuzz/fuzz_hooks.h"
#include "tests/fuzz/program/program_edits.h"
#include "tests/fuzz/program/text_tree.h"

namespace lissome {
namespace {

struct EditRow {
  ProgramEdit edit;
  size_t weight;
};

constexpr EditRow kEdits[] = {
    {change_literal, 14}, {rewire_argument, 12},       {change_arguments, 4},
    {change_type, 8},     {change_size_everywhere, 8}, {change_weight, 3},
    {change_outputs, 4},  {change_writes, 3},          {drop_node, 6},
    {repeat_node, 5},     {change_dimensions, 4},      {move_node, 1},
    {change_op, 14},      {insert_node, 10},           {wrap_node, 3},
};

constexpr std::string_view kSmallest = "input %x: f32[2, 3]\n%1: f32[2, 3] = aten::relu(%x)\nreturn %1\n";

struct Tree {
  TextProgram program;
  uint64_t data = 0;
};

std::optional<Tree> read_tree(std::string_view text) {
  try {
    return Tree{read_program_text(text), read_data_number(text)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string print(const Tree& tree) { return "# data " + std::to_string(tree.data) + "\n" + print_tree(tree.program); }

size_t copy_out(std::string_view text, uint8_t* out, size_t limit) {
  if (text.size() > limit) return 0;
  std::memcpy(out, text.data(), text.size());
  return text.size();
}

void apply_edit(Tree& tree, FuzzRandom& random) {
  if (random.once_in(10)) tree.data = random.below(64);
  const std::vector<TextProgram*> programs = list_programs(tree.program);
  EditedProgram edited(*programs[random.below(programs.size())]);
  size_t total = 0;
  for (const EditRow& row : kEdits) total += row.weight;
  size_t at = random.below(total);
  for (const EditRow& row : kEdits) {
    if (at < row.weight) return row.edit(edited, random);
    at -= row.weight;
  }
}

// The tree of the text that the last mutation gave: libFuzzer mostly asks for the next one on top of it.
struct LastMutation {
  std::string text;
  std::optional<Tree> tree;
};
LastMutation& last_mutation() {
  static LastMutation last;
  return last;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t limit, unsigned seed) {
  FuzzRandom random(seed);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  LastMutation& last = last_mutation();
  if (last.text != text || !last.tree) last.tree = read_tree(text);
  if (!last.tree) return copy_out(kSmallest, data, limit);
  do {
    apply_edit(*last.tree, random);
  } while (random.once_in(6));
  last.text = print(*last.tree);
  const size_t written = copy_out(last.text, data, limit);
  if (written > 0) return written;
  last.tree.reset();
  return copy_out(kSmallest, data, limit);
}

namespace {

void rename(std::vector<TextArgument>& arguments, const std::string& suffix) {
  for (TextArgument& argument : arguments) {
    const bool named = argument.kind == TextArgument::Kind::value || argument.kind == TextArgument::Kind::weight;
    if (named) argument.text += suffix;
    rename(argument.items, suffix);
  }
}

void rename_all(TextProgram& program, const std::string& suffix) {
  for (TextInput& input : program.inputs) {
    input.value += suffix;
    input.name.reset();
  }
  for (TextWeight& weight : program.weights) {
    weight.name += suffix;
    if (!weight.tied.empty()) weight.tied += suffix;
  }
  for (TextNode& node : program.nodes) {
    for (TextResult& result : node.results)
      if (!result.name.empty()) result.name += suffix;
    rename(node.arguments, suffix);
  }
  for (TextOutput& output : program.outputs) {
    std::vector<TextArgument> one{output.value};
    rename(one, suffix);
    output = {one[0], std::nullopt};
  }
}

template <typename List>
void append(List& to, List&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Time goes with the nodes of a program, and what nodes do to each other shows among few.
constexpr size_t kMostJoined = 12;

}  // namespace

// Nodes of the second behind those of the first.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first_data, size_t first_size, const uint8_t* second_data,
                                            size_t second_size, uint8_t* out, size_t limit, unsigned seed) {
  const std::string_view first(reinterpret_cast<const char*>(first_data), first_size),
      second(reinterpret_cast<const char*>(second_data), second_size);
  FuzzRandom random(seed);
  std::optional<Tree> to = read_tree(first), from = read_tree(second);
  if (!to || !from || to->program.nodes.size() + from->program.nodes.size() > kMostJoined)
    return copy_out(first.size() <= limit ? first : kSmallest, out, limit);
  rename_all(from->program, "_s" + std::to_string(random.below(100)));
  const size_t own = to->program.nodes.size();
  append(to->program.inputs, std::move(from->program.inputs));
  append(to->program.weights, std::move(from->program.weights));
  append(to->program.nodes, std::move(from->program.nodes));
  append(to->program.outputs, std::move(from->program.outputs));
  EditedProgram edited(to->program);
  for (int i = 0; i < 3 && own < to->program.nodes.size(); ++i) rewire_argument(edited, random);
  const size_t written = copy_out(print(*to), out, limit);
  return written > 0 ? written : copy_out(first.size() <= limit ? first : kSmallest, out, limit);
}

}  // namespace lissome
