// The edits of fuzz_program's mutator, on the untyped tree. Names stay valid, ops are those that the gate lets pass,
// and what does not apply leaves the tree alone.
#pragma once

#include "lissome/program/syntax/program_text.h"
#include "tests/fuzz/random.h"

namespace lissome {

// A program of the tree: the outermost or a body, with the names that may be used in it.
class EditedProgram {
 public:
  explicit EditedProgram(TextProgram& program) : program_(program) {}

  TextProgram& program() { return program_; }
  std::vector<TextNode>& nodes() { return program_.nodes; }
  // Arguments that read inputs, weights and results of nodes before `position`.
  std::vector<TextArgument> list_readable(size_t position) const;
  std::string make_name() const;  // that no value has

 private:
  TextProgram& program_;
};

// Every program of the tree, the outermost first.
std::vector<TextProgram*> list_programs(TextProgram& root);

using ProgramEdit = void (*)(EditedProgram& program, FuzzRandom& random);

// program_edits.cpp
void change_literal(EditedProgram& program, FuzzRandom& random);
void rewire_argument(EditedProgram& program, FuzzRandom& random);
void change_arguments(EditedProgram& program, FuzzRandom& random);
void change_type(EditedProgram& program, FuzzRandom& random);
void change_size_everywhere(EditedProgram& program, FuzzRandom& random);
void change_weight(EditedProgram& program, FuzzRandom& random);
void change_outputs(EditedProgram& program, FuzzRandom& random);
void change_writes(EditedProgram& program, FuzzRandom& random);
void change_dimensions(EditedProgram& program, FuzzRandom& random);
void drop_node(EditedProgram& program, FuzzRandom& random);
void repeat_node(EditedProgram& program, FuzzRandom& random);
void move_node(EditedProgram& program, FuzzRandom& random);
// program_ops.cpp: what needs the schemas of ops.
void change_op(EditedProgram& program, FuzzRandom& random);
void insert_node(EditedProgram& program, FuzzRandom& random);
void wrap_node(EditedProgram& program, FuzzRandom& random);  // into a condition, loop, map, scan or region

TextArgument make_integer(int64_t value);
TextArgument make_word(std::string word);
TextArgument make_list(std::vector<TextArgument> items);
int64_t pick_integer(FuzzRandom& random);
double pick_floating(FuzzRandom& random);

}  // namespace lissome
