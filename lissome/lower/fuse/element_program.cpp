#include "lissome/lower/fuse/element_program.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "lissome/base.h"

namespace lissome {

ElementProgram read_element_program(const ElementwiseStep& step) {
  ElementProgram program;
  for (const std::string& text : step.program) {
    std::istringstream stream(text);
    ElementProgramLine& i = program.emplace_back();
    std::string name;
    stream >> name >> i.target >> i.a >> i.b >> i.c >> i.alpha >> i.beta;
    const std::optional<ElementOp> op = parse_element_op(name);
    LISSOME_CHECK(op.has_value(), "there is no operation ", name);
    i.op = *op;
  }
  return program;
}

std::vector<std::string> write_element_program(const ElementProgram& program) {
  std::vector<std::string> texts;
  for (const ElementProgramLine& i : program) {
    texts.push_back(std::string(element_op_name(i.op)) + " " + std::to_string(i.target) + " " + std::to_string(i.a) +
                    " " + std::to_string(i.b) + " " + std::to_string(i.c) + " " + i.alpha + " " + i.beta);
  }
  return texts;
}

void number_anew(ElementProgram& program) {
  std::vector<int> now(kElementRegisters, 0);
  for (size_t at = 0; at < program.size(); ++at) {
    ElementProgramLine& i = program[at];
    int* const reads[] = {&i.a, &i.b, &i.c};
    for (int k = 0; k < count_registers(i.op); ++k) *reads[k] = now[static_cast<size_t>(*reads[k])];
    now[static_cast<size_t>(i.target)] = static_cast<int>(at);
    i.target = static_cast<int>(at);
  }
}

bool allocate_registers(ElementProgram& program) {
  std::vector<size_t> last(program.size(), 0);
  for (size_t at = 0; at < program.size(); ++at) {
    const ElementProgramLine& i = program[at];
    const int reads[] = {i.a, i.b, i.c};
    for (int k = 0; k < count_registers(i.op); ++k) last[static_cast<size_t>(reads[k])] = at;
  }
  std::vector<int> register_of(program.size(), -1);
  std::vector<bool> taken(kElementRegisters, false);
  for (size_t at = 0; at < program.size(); ++at) {
    ElementProgramLine& i = program[at];
    int* const reads[] = {&i.a, &i.b, &i.c};
    const int count = count_registers(i.op);
    for (int k = 0; k < count; ++k) {
      const auto value = static_cast<size_t>(*reads[k]);
      *reads[k] = register_of[value];
      if (last[value] == at) taken[static_cast<size_t>(register_of[value])] = false;
    }
    const auto free = std::find(taken.begin(), taken.end(), false);
    if (free == taken.end()) return false;
    *free = true;
    i.target = register_of[at] = static_cast<int>(free - taken.begin());
  }
  return true;
}

}  // namespace lissome
