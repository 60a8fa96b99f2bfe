// The program of an element-wise step as a list that can be changed.
#pragma once

#include <string>
#include <vector>

#include "lissome/kernel.h"
#include "lissome/runtime/step/elementwise/elementwise_steps.h"

namespace lissome {

struct ElementProgramLine {
  ElementOp op = ElementOp::load;
  int target = 0, a = 0, b = 0, c = 0;
  std::string alpha = "0", beta = "0";
};
using ElementProgram = std::vector<ElementProgramLine>;

ElementProgram read_element_program(const ElementwiseStep& step);
std::vector<std::string> write_element_program(const ElementProgram& program);

// Each target a number of its own, in order: what follows needs no register twice.
void number_anew(ElementProgram& program);
// Registers for numbered values, by their last reading; false when there are too few.
bool allocate_registers(ElementProgram& program);

}  // namespace lissome
